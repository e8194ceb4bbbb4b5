"""Logs failures without anything of a user's text: unexpected ones by their place."""

import logging
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from engine.errors import ConfigurationError, ForegramError, InputError
from engine.host.protocol import Problem

_log = logging.getLogger("foregram.host")
_FRAMES = 12
_PAUSE_S = 5.0  # between two lines with one code: an upstream that is gone fails every request
_REFUSAL_PAUSE_S = 60.0
_MOST_CHARS = 200  # of a reason, which may quote what came


@dataclass(slots=True)
class _Pace:
    """At most one line in `pause_s` for each kind of event."""

    pause_s: float
    clock: Callable[[], float]
    _logged_at: dict[str, float] = field(default_factory=dict)
    _untold: dict[str, int] = field(default_factory=dict)  # events since, that have no line

    def due(self, kind: str) -> str | None:
        """None where no line is due; else what it ends with, of those that had none."""
        now = self.clock()
        if kind in self._logged_at and now - self._logged_at[kind] < self.pause_s:
            self._untold[kind] = self._untold.get(kind, 0) + 1
            return None
        self._logged_at[kind] = now
        others = self._untold.pop(kind, 0)
        return f" (and {others:,} more since the last line)" if others else ""


class PacedMessages(logging.Filter):
    """Lets each message of a library through once a minute: who sends no HTTP may do so often."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._pace = _Pace(_REFUSAL_PAUSE_S, clock)

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a line is due; it says how many there were since the last one."""
        more = self._pace.due(str(record.msg))
        record.msg = f"{record.msg}{more or ''}"
        return more is not None


class FailureLog:
    """Logs what fails in completions, a line for each code now and then."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._pace = _Pace(_PAUSE_S, clock)

    def note(self, error: ForegramError) -> None:
        """Log a failure, but none that is a client's own."""
        if isinstance(error, InputError | ConfigurationError):
            return
        if (more := self._pace.due(error.code)) is not None:
            _log.error("a completion failed: %s: %s%s", error.code, error.logged, more)


class RefusalLog:
    """Logs who was not let in, a line for each reason now and then: guesses at a token are many."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._pace = _Pace(_REFUSAL_PAUSE_S, clock)

    def note(self, problem: Problem, sender: str) -> None:
        """Log a refusal. `sender` is an address, empty on a socket."""
        if (more := self._pace.due(problem.code)) is not None:
            by = f" from {sender}" if sender else ""
            _log.warning("a request%s was refused: %s%s", by, problem.message[:_MOST_CHARS], more)


def log_failure(what: str, error: Exception) -> None:
    """Log the kind and the place of `error`. Its message may quote text, so only debugging shows it."""
    frames = traceback.extract_tb(error.__traceback__)[-_FRAMES:]
    stack = " > ".join(f"{Path(one.filename).name}:{one.lineno} {one.name}" for one in frames)
    _log.error("%s: %s at %s", what, type(error).__name__, stack)
    _log.debug("%s", what, exc_info=error)
