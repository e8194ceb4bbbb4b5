"""Logs an unexpected failure by its place, without anything of a user's text."""

import logging
import traceback
from pathlib import Path

_log = logging.getLogger("foregram.host")
_FRAMES = 12


def log_failure(what: str, error: Exception) -> None:
    """Log the kind and the place of `error`. Its message may quote text, so only debugging shows it."""
    frames = traceback.extract_tb(error.__traceback__)[-_FRAMES:]
    stack = " > ".join(f"{Path(one.filename).name}:{one.lineno} {one.name}" for one in frames)
    _log.error("%s: %s at %s", what, type(error).__name__, stack)
    _log.debug("%s", what, exc_info=error)
