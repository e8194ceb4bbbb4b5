"""Requests that are refused, and failures in the log: without anything of a user's text."""

import logging
import math
import time
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from engine.errors import ConfigurationError, ForegramError, InputError
from engine.host.protocol import Problem

_log = logging.getLogger("foregram.host")
_FRAMES = 12
_FAILURE_PAUSE_S = 5.0  # an upstream that is gone fails every request
_REFUSAL_PAUSE_S = 60.0  # guesses at a token are many, and so is what is no HTTP
_MOST_CHARS = 200  # of a reason, which may quote what came


class RefusalError(Exception):
    """A request is not served; the problem says why, `status` is HTTP's."""

    def __init__(self, status: int, problem: Problem, retry_after_s: float | None = None) -> None:
        super().__init__(problem.message)
        self.status, self.problem, self.retry_after_s = status, problem, retry_after_s

    @property
    def headers(self) -> dict[str, str]:
        """When to ask again, in whole seconds, where that is known."""
        wait_s = self.retry_after_s
        return {} if wait_s is None else {"Retry-After": str(max(1, math.ceil(wait_s)))}


class RateLimitedLog:
    """Logs a kind of event now and then, with the number of those that had no line."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._logged_at: dict[str, float] = {}
        self._num_unlogged = Counter[str]()

    def due(self, kind: str, pause_s: float = _REFUSAL_PAUSE_S) -> str | None:
        """None where no line is due; else what it ends with, of those that had none."""
        now = self._clock()
        if kind in self._logged_at and now - self._logged_at[kind] < pause_s:
            self._num_unlogged[kind] += 1
            return None
        self._logged_at[kind] = now
        others = self._num_unlogged.pop(kind, 0)
        return f" (and {others:,} more since the last line)" if others else ""

    def failure(self, error: ForegramError) -> None:
        """Log what failed in a completion, unless it is a client's own fault."""
        if isinstance(error, InputError | ConfigurationError):
            return
        if (more := self.due(error.code, _FAILURE_PAUSE_S)) is not None:
            _log.error("a completion failed: %s: %s%s", error.code, error.logged, more)

    def refusal(self, problem: Problem, sender: str) -> None:
        """Log that a request was not let in. `sender` is an address, empty on a socket."""
        if (more := self.due(problem.code)) is not None:
            by = f" from {sender}" if sender else ""
            _log.warning("a request%s was refused: %s%s", by, problem.message[:_MOST_CHARS], more)


class RateLimitedMessages(logging.Filter):
    """Lets each message of a library through once a minute."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._log = RateLimitedLog(clock)

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a line is due; it says how many there were since the last one."""
        more = self._log.due(str(record.msg))
        record.msg = f"{record.msg}{more or ''}"
        return more is not None


def log_failure(what: str, error: Exception) -> None:
    """Log the kind and the place of `error`. Its message may quote text, so only debugging shows it."""
    frames = traceback.extract_tb(error.__traceback__)[-_FRAMES:]
    stack = " > ".join(f"{Path(one.filename).name}:{one.lineno} {one.name}" for one in frames)
    _log.error("%s: %s at %s", what, type(error).__name__, stack)
    _log.debug("%s", what, exc_info=error)
