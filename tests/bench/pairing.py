"""Two arms of one run on the same tasks: which wins, and how certain that is."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import comb, inf, nan

import numpy as np

_DRAWS = 2_000


@dataclass(frozen=True, slots=True)
class Paired:
    """Shares of exact tasks compared. The ratio's interval holds 95 % of resamples by package."""

    gained: int
    lost: int
    p_value: float  # McNemar's, two-sided and exact; 1 if nothing differs
    ratio: float
    ratio_low: float
    ratio_high: float


def paired(
    arm: Mapping[str, bool], other: Mapping[str, bool], packages: Mapping[str, str]
) -> Paired:
    """Compare the outcome of each task in two arms; keys are tasks."""
    gained = sum(arm[task] and not other[task] for task in arm)
    lost = sum(other[task] and not arm[task] for task in arm)
    won, had = Counter[str](), Counter[str]()  # exact tasks, by package
    for task in arm:
        won[packages[task]] += arm[task]
        had[packages[task]] += other[task]
    low, high = ratio_interval([*won.values()], [*had.values()])
    nothing_had = inf if won.total() else nan
    ratio = won.total() / had.total() if had.total() else nothing_had
    return Paired(gained, lost, mcnemar(gained, lost), ratio, low, high)


def mcnemar(gained: int, lost: int) -> float:
    """Return the probability of at least this difference if both directions are equally likely."""
    pairs, fewer = gained + lost, min(gained, lost)
    tail: float = sum(comb(pairs, k) for k in range(fewer + 1)) / 2**pairs
    return min(1.0, 2 * tail)


def ratio_interval(ours: Sequence[int], others: Sequence[int]) -> tuple[float, float]:
    """Return the 95 % interval of our sum over theirs for resampled pairs, always the same.

    If their sum is 0, the ratio is infinite. Draws with 0 in both are left out; NaN if no other is
    left.
    """
    draw = np.random.default_rng(0).integers(0, len(ours), (_DRAWS, len(ours)))
    won, had = (np.array(some, float)[draw].sum(axis=1) for some in (ours, others))
    ratios = np.full(_DRAWS, np.inf)
    np.divide(won, had, out=ratios, where=had > 0)
    known = np.sort(ratios[(won > 0) | (had > 0)])
    if not len(known):
        return nan, nan
    return float(known[int(0.025 * len(known))]), float(known[int(0.975 * len(known))])
