"""The figures of a crowd's run: the time to a text, missing answers, and the longest waits.

A figure without a single case is NaN. Completions computed ahead do not count as requests, as
nobody waits for them.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import nan
from statistics import median
from typing import Self

from engine.bench.figures import percentile
from tests.bench.simulated.load.crowd import CrowdRun
from tests.bench.simulated.load.host_requests import HostRequest

FEWEST_ASKED = 20  # requests; a person with fewer mostly waits for the first prompt
TOO_LATE_MS = 20.0  # of the simulating process: above it, the process itself adds to the figures


@dataclass(frozen=True, slots=True)
class Waits:
    """Percentiles of the milliseconds after a request."""

    p50: float
    p90: float
    p99: float

    @classmethod
    def of(cls, seconds: Iterable[float | None]) -> Self:
        """Return the percentiles of those that ended."""
        ms = [1000 * one for one in seconds if one is not None]
        return cls(*(percentile(ms, share) for share in (50, 90, 99)))


@dataclass(frozen=True, slots=True)
class LoadFigures:
    people: int
    active: float  # share of the time in which each person typed
    seconds: float
    requests: int
    answered: int
    superseded: int  # by the same person's next key
    refused: int
    failed: int
    lost: int  # never ended
    troubles: Mapping[str, int]  # why requests were refused or failed
    first_text_ms: Waits  # of all requests with a text, superseded later or not
    answered_ms: Waits
    slowest_over_median: float  # by the median time of each person to the first text
    tokens_per_s: float  # tokens of answers, those computed ahead included
    ahead: int  # requests for which nobody waited
    memory_mb: float  # the host's maximum
    late_ms_p99: float  # of the simulating process

    @classmethod
    def of(cls, run: CrowdRun) -> Self:
        every = [one for requests in run.requests for one in requests]
        asked = [one for one in every if not one.is_ahead]
        ended = Counter(one.outcome for one in asked)
        return cls(
            people=len(run.requests),
            active=run.active,
            seconds=run.seconds,
            requests=len(asked),
            answered=ended["answered"],
            superseded=ended["superseded"],
            refused=ended["refused"],
            failed=ended["failed"],
            lost=ended[None],
            troubles=dict(Counter(one.trouble for one in asked if one.trouble).most_common()),
            first_text_ms=Waits.of(one.first_text_s for one in asked),
            answered_ms=Waits.of(one.ended_s for one in asked if one.outcome == "answered"),
            slowest_over_median=_slowest_over_median(run.requests),
            tokens_per_s=sum(one.tokens for one in every) / run.seconds,
            ahead=len(every) - len(asked),
            memory_mb=max(run.memory_mb, default=nan),
            late_ms_p99=percentile([1000 * late for late in run.late_s], 99),
        )

    @property
    def is_late(self) -> bool:
        return self.late_ms_p99 > TOO_LATE_MS


def _slowest_over_median(people: Sequence[Sequence[HostRequest]]) -> float:
    """Return the slowest person's wait over the median one; NaN if nobody got a text.

    Only people with at least `FEWEST_ASKED` requests count.
    """
    asked = [[one for one in requests if not one.is_ahead] for requests in people]
    waits = [
        [one.first_text_s for one in requests if one.first_text_s is not None]
        for requests in asked
        if len(requests) >= FEWEST_ASKED
    ]
    medians = [median(some) for some in waits if some]
    return max(medians) / median(medians) if medians else nan
