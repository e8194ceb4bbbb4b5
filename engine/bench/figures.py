"""Figures over many measured requests: tokens per step, speed, identity."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from engine.bench.measured import Measured
from engine.request import Cost


@dataclass(frozen=True, slots=True)
class Speed:
    """Decoding speed, without prefill. NaN if no tokens were decoded."""

    tokens_per_second: float  # all tokens over the total time
    ms_per_token_p50: float  # over items
    ms_per_token_p95: float

    @classmethod
    def of(cls, runs: Sequence[Cost]) -> Self:
        """Sum up items. Items without tokens count only in the total time."""
        total_ms = sum(run.decode_ms for run in runs)
        each = [run.decode_ms / run.tokens for run in runs if run.tokens]
        total = sum(run.tokens for run in runs)
        return cls(
            tokens_per_second=1000 * total / total_ms if each and total_ms else np.nan,
            ms_per_token_p50=percentile(each, 50),
            ms_per_token_p95=percentile(each, 95),
        )

    def over(self, other: "Speed") -> float:
        """Return this speed divided by `other`."""
        return self.tokens_per_second / other.tokens_per_second


@dataclass(frozen=True, slots=True)
class SpeedFigures:
    """A set's figures. Tokens, steps, rows and sources are with lookahead on."""

    items: int
    identical: float  # share of items whose text is the same; below 1 is a defect
    tokens: int
    steps: int
    tokens_per_step: float
    rows_per_step: float
    off: Speed
    on: Speed
    on_over_off: float  # speeds over all tokens; above 1, lookahead is faster
    accepted_by_source: Mapping[str, int]
    finish_reasons: Mapping[str, int]


def speed_figures(runs: Sequence[Measured]) -> SpeedFigures:
    """Sum up at least one run."""
    stats = [run.on.cost for run in runs]
    on, off = Speed.of(stats), Speed.of([run.off.cost for run in runs])
    steps, tokens = sum(one.steps for one in stats), sum(one.tokens for one in stats)
    accepted = Counter[str]()
    for one in stats:
        accepted.update(one.accepted_by_source)
    return SpeedFigures(
        items=len(runs),
        identical=sum(run.is_identical for run in runs) / len(runs),
        tokens=tokens,
        steps=steps,
        tokens_per_step=tokens / max(steps, 1),
        rows_per_step=sum(one.rows for one in stats) / max(steps, 1),
        off=off,
        on=on,
        on_over_off=on.over(off),
        accepted_by_source=dict(accepted.most_common()),
        finish_reasons=dict(Counter(run.on.finish_reason.value for run in runs).most_common()),
    )


def percentile(values: Iterable[float], percent: float) -> float:
    """Return the interpolated percentile, NaN without values."""
    known = list(values)
    return float(np.percentile(known, percent)) if known else np.nan
