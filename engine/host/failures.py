"""Logs failures without anything of a user's text: unexpected ones by their place."""

import logging
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from engine.errors import ConfigurationError, ForegramError, InputError

_log = logging.getLogger("foregram.host")
_FRAMES = 12
_PAUSE_S = 5.0  # between two lines with one code: an upstream that is gone fails every request


@dataclass(slots=True)
class FailureLog:
    """Logs what fails in completions, a line for each code now and then."""

    clock: Callable[[], float] = time.monotonic
    _logged_at: dict[str, float] = field(default_factory=dict)
    _untold: dict[str, int] = field(default_factory=dict)  # failures since, that have no line

    def note(self, error: ForegramError) -> None:
        """Log a failure, but none that is a client's own."""
        code, now = error.code, self.clock()
        if isinstance(error, InputError | ConfigurationError):
            return
        if code in self._logged_at and now - self._logged_at[code] < _PAUSE_S:
            self._untold[code] = self._untold.get(code, 0) + 1
            return
        self._logged_at[code] = now
        others = self._untold.pop(code, 0)
        more = f" (and {others:,} more since the last line)" if others else ""
        _log.error("a completion failed: %s: %s%s", code, error.logged, more)


def log_failure(what: str, error: Exception) -> None:
    """Log the kind and the place of `error`. Its message may quote text, so only debugging shows it."""
    frames = traceback.extract_tb(error.__traceback__)[-_FRAMES:]
    stack = " > ".join(f"{Path(one.filename).name}:{one.lineno} {one.name}" for one in frames)
    _log.error("%s: %s at %s", what, type(error).__name__, stack)
    _log.debug("%s", what, exc_info=error)
