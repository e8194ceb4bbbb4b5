"""Limits on what each principal may hold and request, so that all get a fair share."""

import math
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from typing import Self

from engine.errors import ConfigurationError
from engine.host.failures import RefusalError
from engine.host.protocol import MAX_ANSWER_TOKENS, Problem

_BURST_S = 3.0  # seconds of requests at the full rate that may come at once
_COUNTED_BYTES = 100_000  # bytes of a body that count as another request, as reading takes time
_STEADY_S, _BUSY_S = 5.0, 1.0  # seconds before a retry: too many buffers; too many open requests
_BODIES_PART = 4  # open requests' bodies may be 1/4 of `megabytes`: reading takes twice their size


class QuotaError(RefusalError):
    """A request would exceed its principal's quota."""

    def __init__(self, sentence: str, retry_after_s: float) -> None:
        super().__init__(429, Problem("quota", sentence), retry_after_s)


@dataclass(frozen=True, slots=True)
class Quotas:
    """Limits for each principal. The defaults are generous for one person with several editors."""

    clients: int = 32
    buffers: int = 2_000
    megabytes: int = 256  # memory of the buffers' text
    tokens: int = MAX_ANSWER_TOKENS  # tokens in an answer
    waiting: int = 64  # unanswered requests besides the running ones
    running: int = 8  # concurrent completions
    requests: int = 100  # requests of any kind per second

    def changed(self, given: Iterable[str]) -> Self:
        """Return a copy with values given as `NAME=VALUE`. Raises ConfigurationError."""
        return replace(self, **dict(_parsed(one) for one in given))

    def check_buffers(self, num_clients: int, num_buffers: int, num_bytes: int) -> None:
        """Raise QuotaError if a principal would hold more than this."""
        megabytes = math.ceil(num_bytes / 1e6)
        for number, quota, what in (
            (num_clients, self.clients, "editors"),
            (num_buffers, self.buffers, "open files"),
            (megabytes, self.megabytes, "MB of open files"),
        ):
            if number > quota:
                raise QuotaError(
                    f"you would have {number:,} {what} here, and may have {quota:,}: close some",
                    _STEADY_S,
                )


# A whole team may share a token without a name, or a private socket: 64 people.
_TEAM = Quotas(2_048, 128_000, 1_024, waiting=4_096, running=512, requests=6_400)


@dataclass(slots=True)
class _Requests:
    """Requests of one principal: a token bucket, and the unanswered ones."""

    quotas: Quotas
    left: float  # small requests allowed at once, at time `at`
    at: float
    num_open: int = 0
    open_bytes: int = 0  # bytes of open requests' bodies

    def take(self, body_bytes: int, now: float) -> None:
        rate = self.quotas.requests
        most = _BURST_S * rate
        cost = min(1 + body_bytes / _COUNTED_BYTES, most)
        self.left, self.at = min(most, self.left + (now - self.at) * rate), now
        if self.left < cost:
            raise QuotaError(
                f"you may send {rate} requests a second here, large ones count as several, and you "
                "sent more",
                (cost - self.left) / rate,
            )
        self.left -= cost
        self._check_open()

    def _check_open(self) -> None:
        waits = "wait here for an answer, or to be read, and no more than"
        most = self.quotas.waiting + self.quotas.running
        if self.num_open >= most:
            raise QuotaError(f"{self.num_open:,} of your requests {waits} {most:,} may", _BUSY_S)
        megabytes, most_mb = self.open_bytes / 1e6, self.quotas.megabytes / _BODIES_PART
        if megabytes >= most_mb:
            raise QuotaError(
                f"{megabytes:,.0f} MB of your requests {waits} {most_mb:,.0f} may", _BUSY_S
            )


class QuotaKeeper:
    """The quotas of all principals, and their current requests."""

    def __init__(
        self, given: Iterable[str] = (), clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Change default quotas by `NAME=VALUE`. Raises ConfigurationError."""
        given = tuple(given)
        self._named, self._nameless = Quotas().changed(given), _TEAM.changed(given)
        self._clock = clock
        self._requests: dict[str, _Requests] = {}

    def of(self, principal: str) -> Quotas:
        """The quotas of a principal."""
        return self._named if principal else self._nameless

    @contextmanager
    def request_of(self, principal: str, body_bytes: int = 0) -> Iterator[None]:
        """Admit a principal's request for as long as the block runs. Raises QuotaError."""
        now, quotas = self._clock(), self.of(principal)
        requests = self._requests.setdefault(principal, _Requests(quotas, math.inf, now))
        requests.take(body_bytes, now)
        requests.num_open += 1
        requests.open_bytes += body_bytes
        try:
            yield
        finally:
            requests.num_open -= 1
            requests.open_bytes -= body_bytes


def _parsed(given: str) -> tuple[str, int]:
    name, _, value = given.partition("=")
    names = [one.name for one in fields(Quotas)]
    if name not in names:
        raise ConfigurationError(f"there is no quota {name!r}; there are: {', '.join(names)}")
    if not (value.isascii() and value.isdecimal() and len(value) < 10 and int(value)):
        raise ConfigurationError(
            f"the quota {name} has to be a whole number above 0, not {value!r}"
        )
    return name, int(value)
