"""What the log keeps of an unexpected failure: where it happened, and nothing of anybody's text."""

import logging
import traceback
from pathlib import Path

_log = logging.getLogger("foregram.host")
_FRAMES = 12


def log_failure(what: str, error: Exception) -> None:
    """Log the kind and the place of `error`; its message may quote a text, so that is for debugging."""
    frames = traceback.extract_tb(error.__traceback__)[-_FRAMES:]
    places = " > ".join(f"{Path(one.filename).name}:{one.lineno} {one.name}" for one in frames)
    _log.error("%s: %s at %s", what, type(error).__name__, places)
    _log.debug("%s", what, exc_info=error)
