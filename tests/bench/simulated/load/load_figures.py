"""The figures of crowds' runs: the time to a text, missing answers, and the longest waits.

A figure without a single case is NaN. Completions computed ahead do not count as requests, as
nobody waits for them.
"""

import os
import platform
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import isnan, nan
from statistics import median
from typing import Any, Self

from rich.table import Table

from engine.bench.figures import percentile
from engine.bench.report import figure_table, plain
from engine.host.principals import METRICS_NAME
from engine.host.protocol import Status
from tests.bench.simulated.load.crowd import CrowdRun
from tests.bench.simulated.load.host_requests import HostRequest

_COUNTS = ("requests", "answered", "superseded", "refused", "failed", "lost")
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


def load_json(runs: Sequence[LoadFigures], host: Status, seed: int) -> dict[str, Any]:
    """Return figures by number of people, and their host. Only unknown numbers are null."""
    return {
        "seed": seed,
        "model": host.model,
        "device": host.device,
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 2),
        "runs": plain([asdict(run) for run in runs]),
    }


def load_table(runs: Sequence[LoadFigures], host: Status) -> Table:
    title = f"{host.model} {host.dtype} on {host.device}"
    people = [f"{run.people}" for run in runs]
    table = figure_table(["people"], people, title=title, caption=_caption(runs))
    cells = [_cells(run) for run in runs]
    for name in cells[0]:
        table.add_row(name, *(one[name] for one in cells))
    return table


def _cells(run: LoadFigures) -> dict[str, str]:
    return {
        **_waits("to the first text", run.first_text_ms),
        **_waits("to the end, answered", run.answered_ms),
        "slowest person / median one": _told(run.slowest_over_median, ".2f"),
        **{name: f"{getattr(run, name):,}" for name in _COUNTS},
        "computed ahead": f"{run.ahead:,}",
        "tokens a second": f"{run.tokens_per_s:,.0f}",
        "memory of the host, MB": _told(run.memory_mb, ",.0f"),
        "this process was late, ms p99": f"{run.late_ms_p99:.0f}{'!' if run.is_late else ''}",
    }


def _waits(what: str, waits: Waits) -> dict[str, str]:
    shares = {"p50": waits.p50, "p90": waits.p90, "p99": waits.p99}
    return {f"{what}, ms {name}": _told(value, ",.0f") for name, value in shares.items()}


def _told(value: float, form: str) -> str:
    return "-" if isnan(value) else format(value, form)


def _caption(runs: Sequence[LoadFigures]) -> str:
    load = f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
    how = f"{runs[0].seconds:g} s each, of which a person types {runs[0].active:.0%}"
    parts = [how, f"simulated on {platform.machine()}, {load}"]
    troubles = Counter[str]()
    for run in runs:
        troubles.update(run.troubles)
    parts += [f"{name}: {count}" for name, count in troubles.most_common()]
    if any(isnan(run.memory_mb) for run in runs):
        parts.append(f"no memory: the host tells it to a token by the name of {METRICS_NAME}")
    if any(run.is_late for run in runs):
        parts.append("!: this process did not keep up, and its own time is in the figures")
    return "; ".join(parts)
