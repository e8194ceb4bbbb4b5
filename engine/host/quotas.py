"""What one principal may hold and ask for, so that none takes what belongs to all."""

import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from typing import Self

from engine.errors import ConfigurationError
from engine.host.principals import Principal
from engine.host.protocol import MAX_TOKENS, Problem

_BURST_S = 3.0  # of requests at the full rate, that may come at once
_COUNTED_BYTES = 100_000  # of a body, that count as one request more: to read them takes time
_STEADY_S = 5.0  # before what is held is worth another try
_BUSY_S = 1.0  # before what waits is
_BODIES_PART = 4  # of the megabytes for buffers so many may be in bodies that wait: one takes twice
_TEAM = 64  # people who may share one token


def retry_after(seconds: float) -> dict[str, str]:
    """The header that tells when to ask again, in whole seconds."""
    return {"Retry-After": str(max(1, math.ceil(seconds)))}


class QuotaError(Exception):
    """A principal would have more than its quota."""

    def __init__(self, sentence: str, retry_after_s: float) -> None:
        super().__init__(sentence)
        self.retry_after_s = retry_after_s

    @property
    def problem(self) -> Problem:
        """For who is refused."""
        return Problem("quota", str(self))

    @property
    def headers(self) -> dict[str, str]:
        """When it may be asked again, in whole seconds."""
        return retry_after(self.retry_after_s)


@dataclass(frozen=True, slots=True)
class Quotas:
    """Of each principal. The defaults are generous for one person with several editors open."""

    clients: int = 32
    buffers: int = 2_000
    megabytes: int = 256  # of the buffers' text, as the host holds it
    tokens: int = MAX_TOKENS  # of a completion
    waiting: int = 64  # requests that are not answered yet, beside those that run
    running: int = 8  # completions that go on side by side
    requests: int = 100  # a second, of any kind

    def __post_init__(self) -> None:
        for one in fields(self):
            if getattr(self, one.name) < 1:
                raise ConfigurationError(f"the quota {one.name} has to be 1 or more")

    @classmethod
    def of_a_team(cls) -> Self:
        """Where one token, or a private socket, serves whoever comes: they may be many."""
        scaled = {one.name: _TEAM * int(str(one.default)) for one in fields(cls)}
        return cls(**scaled | {"megabytes": 1024, "tokens": MAX_TOKENS})

    def changed(self, given: Iterable[str]) -> Self:
        """With values as `NAME=VALUE`. Raises ConfigurationError."""
        return replace(self, **dict(_parsed(one) for one in given))

    def check_open(self, num_open: int, body_bytes: int) -> None:
        """Raises QuotaError where so many requests, or so long ones, are not answered yet."""
        waits = "wait here for an answer, or to be read, and no more than"
        most = self.waiting + self.running
        if num_open >= most:
            raise QuotaError(f"{num_open:,} of your requests {waits} {most:,} may", _BUSY_S)
        most_mb = self.megabytes / _BODIES_PART
        if body_bytes >= most_mb * 1e6:
            raise QuotaError(
                f"{body_bytes / 1e6:,.0f} MB of your requests {waits} {most_mb:,.0f} may", _BUSY_S
            )

    def check_buffers(self, num_clients: int, num_buffers: int, num_bytes: int) -> None:
        """Raises QuotaError where a principal would hold more than this."""
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


@dataclass(slots=True)
class TokenBucket:
    """Lets requests through at a rate; some may come at once."""

    per_s: float
    clock: Callable[[], float] = time.monotonic
    _left: float = field(init=False)
    _at: float = field(init=False)

    def __post_init__(self) -> None:
        self._left, self._at = self.most, self.clock()

    @property
    def most(self) -> float:
        """Requests that may come at once."""
        return max(1.0, _BURST_S * self.per_s)

    def take(self, cost: float = 1.0) -> None:
        """Let one through that counts as `cost` plain ones. Raises QuotaError."""
        cost = min(cost, self.most)
        now = self.clock()
        self._left = min(self.most, self._left + (now - self._at) * self.per_s)
        self._at = now
        if self._left < cost:
            raise QuotaError(
                f"you may send {self.per_s:g} requests a second here, large ones count as several, "
                "and you sent more",
                (cost - self._left) / self.per_s,
            )
        self._left -= cost


class QuotaKeeper:
    """The quotas of all principals, and how much of those on requests is used."""

    def __init__(
        self, given: Iterable[str] = (), clock: Callable[[], float] = time.monotonic
    ) -> None:
        """With `given` quotas as `NAME=VALUE`. Raises ConfigurationError."""
        given = tuple(given)
        self._named, self._nameless = Quotas().changed(given), Quotas.of_a_team().changed(given)
        self._clock = clock
        self._buckets: dict[Principal, TokenBucket] = {}
        self._num_open: Counter[Principal] = Counter()
        self._open_bytes: Counter[Principal] = Counter()  # of their bodies

    def of(self, principal: Principal) -> Quotas:
        """The quotas of a principal."""
        return self._named if principal.name else self._nameless

    @contextmanager
    def request_of(
        self, principal: Principal, body_bytes: int = 0
    ) -> Iterator[Callable[[int], None]]:
        """Let a request of a principal through, until it is answered. Raises QuotaError.

        Yields what counts further bytes of its body as they come, and raises it, too.
        """
        quotas = self.of(principal)
        if principal not in self._buckets:
            self._buckets[principal] = TokenBucket(quotas.requests, self._clock)
        bucket, held = self._buckets[principal], body_bytes
        bucket.take(1 + body_bytes / _COUNTED_BYTES)
        quotas.check_open(self._num_open[principal], self._open_bytes[principal])
        self._num_open[principal] += 1
        self._open_bytes[principal] += body_bytes

        def take(num_bytes: int) -> None:
            nonlocal held
            quotas.check_open(self._num_open[principal] - 1, self._open_bytes[principal] - held)
            # Of one request, and one less: sums of many pieces are rounded.
            most = max(0.0, bucket.most - 2 - held / _COUNTED_BYTES)
            bucket.take(min(num_bytes / _COUNTED_BYTES, most))
            held += num_bytes
            self._open_bytes[principal] += num_bytes

        try:
            yield take
        finally:
            self._num_open[principal] -= 1
            self._open_bytes[principal] -= held


def _parsed(given: str) -> tuple[str, int]:
    name, _, value = given.partition("=")
    names = [one.name for one in fields(Quotas)]
    if name not in names:
        raise ConfigurationError(f"there is no quota {name!r}; there are: {', '.join(names)}")
    if not (value.isascii() and value.isdecimal() and len(value) < 10):
        raise ConfigurationError(f"the quota {name} has to be a whole number, not {value!r}")
    return name, int(value)
