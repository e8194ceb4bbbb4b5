"""What a crowd's run amounts to: how soon text came, what did not come, and who waited longest.

What cannot be told, for want of a single case, is NaN. Nothing that was computed ahead counts as a
request, as nobody waits for it.
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

FEWEST_ASKED = 20  # of who counts for fairness: the first prompt is most of what fewer wait for
TOO_LATE_MS = 20.0  # of the simulating process: above it, its own time is in the figures


@dataclass(frozen=True, slots=True)
class Waits:
    """Milliseconds from a request on."""

    p50: float
    p90: float
    p99: float

    @classmethod
    def of(cls, seconds: Iterable[float | None]) -> Self:
        """Sum up those that ended."""
        ms = [1000 * one for one in seconds if one is not None]
        return cls(*(percentile(ms, share) for share in (50, 90, 99)))


@dataclass(frozen=True, slots=True)
class LoadFigures:
    """One number of people."""

    people: int
    active: float  # the share of the time for which each typed
    seconds: float
    requests: int
    answered: int
    superseded: int  # by the same person's next key
    refused: int
    failed: int
    lost: int  # never ended
    troubles: Mapping[str, int]  # why requests were refused or failed
    first_text_ms: Waits  # of all that had a text, superseded later or not
    answered_ms: Waits
    slowest_over_median: float  # of the people's own medians to the first text
    tokens_per_s: float  # that the answered ones hold, those ahead included
    ahead: int  # requests for which nobody waited
    memory_mb: float  # the host's most
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
    """How much longer the slowest person waits than the median one. NaN where nobody got a text.

    Who asked less than `FEWEST_ASKED` times does not count.
    """
    asked = [[one for one in requests if not one.is_ahead] for requests in people]
    waits = [
        [one.first_text_s for one in requests if one.first_text_s is not None]
        for requests in asked
        if len(requests) >= FEWEST_ASKED
    ]
    medians = [median(some) for some in waits if some]
    return max(medians) / median(medians) if medians else nan
