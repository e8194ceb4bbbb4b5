"""Sums over many measured requests: tokens per step, speed, identity.

Ratios are of speeds, on over off and ours over a peer's, so above 1 we are faster. The ratio of
totals weighs every token alike, that of medians every item.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from engine.bench.measured import Measured, PeerRun
from engine.bench.task_sets import grouped
from engine.request import CompletionStats


@dataclass(frozen=True, slots=True)
class Speed:
    """How fast tokens were decoded, prefill apart. NaN where none were."""

    tokens_per_second: float  # all tokens over all time
    ms_per_token_p50: float  # over items
    ms_per_token_p95: float

    @classmethod
    def of(cls, tokens: Sequence[int], decode_ms: Sequence[float]) -> Self:
        """Sum up items; those without a token only count for the total time."""
        total_ms = sum(decode_ms)
        each = [ms / n for n, ms in zip(tokens, decode_ms, strict=True) if n]
        return cls(
            tokens_per_second=1000 * sum(tokens) / total_ms if each and total_ms else np.nan,
            ms_per_token_p50=percentile(each, 50),
            ms_per_token_p95=percentile(each, 95),
        )

    def over(self, other: "Speed") -> "Ratio":
        """How many times as fast as `other` this is."""
        return Ratio(
            of_totals=self.tokens_per_second / other.tokens_per_second,
            of_medians=other.ms_per_token_p50 / self.ms_per_token_p50,
        )


@dataclass(frozen=True, slots=True)
class Ratio:
    """One speed over another."""

    of_totals: float
    of_medians: float


@dataclass(frozen=True, slots=True)
class GroupRatio:
    """Speed on over off, of totals, in one group of items."""

    group: str
    ratio: float


@dataclass(frozen=True, slots=True)
class PeerFigures:
    """A peer's speed, and ours over it on the same items, with lookahead on and off."""

    speed: Speed
    on_over_peer: Ratio
    off_over_peer: Ratio


@dataclass(frozen=True, slots=True)
class SpeedFigures:
    """A set's figures. Tokens, steps, rows and sources are those with lookahead on."""

    items: int
    identical: float  # share of items, 1 unless something is broken
    tokens: int
    steps: int
    tokens_per_step: float
    tokens_per_step_p50: float
    rows_per_step: float
    off: Speed
    on: Speed
    on_over_off: Ratio
    worst_group: GroupRatio
    accepted_by_source: Mapping[str, int]
    finish_reasons: Mapping[str, int]
    prompt_tokens_p50: float
    prefill_ms_p50: float  # NaN of a single item that was decoded with lookahead first
    reading_ms_p50: float  # what lookahead adds to it
    peers: Mapping[str, PeerFigures]


def speed_figures(runs: Sequence[Measured]) -> SpeedFigures:
    """Sum up at least one run."""
    on = [run.on.stats for run in runs]
    steps = sum(stats.steps for stats in on)
    accepted = Counter[str]()
    for stats in on:
        accepted.update(stats.accepted_by_source)
    peers = dict.fromkeys(name for run in runs for name in run.peers)  # in their order
    return SpeedFigures(
        items=len(runs),
        identical=sum(run.is_identical for run in runs) / len(runs),
        tokens=sum(stats.tokens for stats in on),
        steps=steps,
        tokens_per_step=sum(stats.tokens for stats in on) / max(steps, 1),
        tokens_per_step_p50=percentile([s.tokens_per_step for s in on if s.steps], 50),
        rows_per_step=sum(stats.rows for stats in on) / max(steps, 1),
        off=speed_of([run.off.stats for run in runs]),
        on=speed_of(on),
        on_over_off=_on_over_off(runs),
        worst_group=_worst_group(runs),
        accepted_by_source=dict(accepted.most_common()),
        finish_reasons=dict(Counter(run.on.finish_reason.value for run in runs).most_common()),
        prompt_tokens_p50=percentile([stats.prompt_tokens for stats in on], 50),
        prefill_ms_p50=percentile([run.prefill_ms for run in runs], 50),
        reading_ms_p50=percentile([run.reading_ms for run in runs], 50),
        peers={name: _peer_figures(runs, name) for name in peers},
    )


def percentile(values: Iterable[float | None], percent: float) -> float:
    """Interpolated percentile of those that are known; NaN of nothing."""
    known = [value for value in values if value is not None]
    return float(np.percentile(known, percent)) if known else np.nan


def speed_of(runs: Sequence[CompletionStats] | Sequence[PeerRun]) -> Speed:
    """Sum up what was decoded."""
    return Speed.of([run.tokens for run in runs], [run.decode_ms for run in runs])


def _worst_group(runs: Sequence[Measured]) -> GroupRatio:
    groups = grouped(runs, lambda run: run.group)
    ratios = [GroupRatio(group, _on_over_off(some).of_totals) for group, some in groups.items()]
    return min(ratios, key=lambda worst: np.nan_to_num(worst.ratio, nan=np.inf))


def _on_over_off(runs: Sequence[Measured]) -> Ratio:
    on, off = speed_of([run.on.stats for run in runs]), speed_of([run.off.stats for run in runs])
    return on.over(off)


def _peer_figures(runs: Sequence[Measured], name: str) -> PeerFigures:
    """Compare on the items that the peer was asked for."""
    asked = [run for run in runs if name in run.peers]
    speed = speed_of([run.peers[name] for run in asked])
    return PeerFigures(
        speed=speed,
        on_over_peer=speed_of([run.on.stats for run in asked]).over(speed),
        off_over_peer=speed_of([run.off.stats for run in asked]).over(speed),
    )
