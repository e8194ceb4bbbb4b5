"""Refused requests, and failures in the log, free of users' text."""

import logging
import math
import time
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from engine.errors import ConfigurationError, ForegramError, InputError
from engine.host.protocol import Problem

_log = logging.getLogger("foregram.host")
_FRAMES = 12  # innermost stack frames in a log line
_FAILURE_PAUSE_S = 5.0  # seconds between log lines: an upstream that is down fails every request
_REFUSAL_PAUSE_S = 60.0  # seconds between log lines: guessed tokens and non-HTTP data are many
_MOST_CHARS = 200  # characters of a logged reason, which may quote the request


class RefusalError(Exception):
    """A request is refused with an HTTP `status`; the problem says why."""

    def __init__(self, status: int, problem: Problem, retry_after_s: float | None = None) -> None:
        super().__init__(problem.message)
        self.status, self.problem, self.retry_after_s = status, problem, retry_after_s

    @property
    def headers(self) -> dict[str, str]:
        """`Retry-After` in whole seconds, if the delay is known."""
        wait_s = self.retry_after_s
        return {} if wait_s is None else {"Retry-After": str(max(1, math.ceil(wait_s)))}


@dataclass(slots=True, eq=False)
class RateLimitedLog:
    """Logs each kind of event at intervals, with the number of events left out."""

    clock: Callable[[], float] = time.monotonic
    _logged_at: dict[str, float] = field(default_factory=dict)
    _num_unlogged: Counter[str] = field(default_factory=Counter)

    def due(self, kind: str, pause_s: float = _REFUSAL_PAUSE_S) -> str | None:
        """Return the end of the line, which counts omitted events; None if no line is due."""
        now = self.clock()
        if kind in self._logged_at and now - self._logged_at[kind] < pause_s:
            self._num_unlogged[kind] += 1
            return None
        self._logged_at[kind] = now
        others = self._num_unlogged.pop(kind, 0)
        return f" (and {others:,} more since the last line)" if others else ""

    def failure(self, error: ForegramError) -> None:
        """Log a failed completion, unless the client is at fault."""
        if isinstance(error, InputError | ConfigurationError):
            return
        if (more := self.due(error.code, _FAILURE_PAUSE_S)) is not None:
            _log.error("a completion failed: %s: %s%s", error.code, error.logged, more)

    def refusal(self, problem: Problem, sender: str) -> None:
        """Log a refused request. `sender` is an address, empty on a socket."""
        if (more := self.due(problem.code)) is not None:
            by = f" from {sender}" if sender else ""
            _log.warning("a request%s was refused: %s%s", by, problem.message[:_MOST_CHARS], more)

    def filter(self, record: logging.LogRecord) -> bool:
        """Let a message through if its line is due, with the number of omitted ones."""
        more = self.due(str(record.msg))
        record.msg = f"{record.msg}{more or ''}"
        return more is not None


def log_failure(what: str, error: Exception) -> None:
    """Log the type and place of `error`; its message may quote text, so it is at level DEBUG."""
    frames = traceback.extract_tb(error.__traceback__)[-_FRAMES:]
    stack = " > ".join(f"{Path(one.filename).name}:{one.lineno} {one.name}" for one in frames)
    _log.error("%s: %s at %s", what, type(error).__name__, stack)
    _log.debug("%s", what, exc_info=error)
