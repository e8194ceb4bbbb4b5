"""Two arms of one run on the same tasks: who wins, and how sure that is."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import comb, inf, isnan, nan

_DRAWS = 2_000


@dataclass(frozen=True, slots=True)
class Paired:
    """Shares of exact tasks compared. The interval of the ratio holds 95 % of draws of packages."""

    gained: int
    lost: int
    p_value: float  # McNemar's, two-sided and exact: 1 where nothing differs
    ratio: float
    ratio_low: float
    ratio_high: float


def paired(
    arm: Mapping[str, bool], other: Mapping[str, bool], packages: Mapping[str, str]
) -> Paired:
    """Compare what became of each task in an arm with what did in another; keys are tasks."""
    gained = sum(arm[task] and not other[task] for task in arm)
    lost = sum(other[task] and not arm[task] for task in arm)
    sums: dict[str, tuple[int, int]] = {}
    for task in arm:
        won, had = sums.get(packages[task], (0, 0))
        sums[packages[task]] = won + arm[task], had + other[task]
    low, high = _interval(list(sums.values()))
    ratio = _ratio(list(sums.values()))
    return Paired(gained, lost, mcnemar(gained, lost), ratio, low, high)


def mcnemar(gained: int, lost: int) -> float:
    """The probability of a difference as large where both directions are equally likely."""
    pairs, fewer = gained + lost, min(gained, lost)
    tail: float = sum(comb(pairs, k) for k in range(fewer + 1)) / 2**pairs
    return min(1.0, 2 * tail)


def _interval(sums: Sequence[tuple[int, int]]) -> tuple[float, float]:
    """The ratio's 2.5 % and 97.5 % points when packages are drawn again; the same at each call.

    Draws without an exact task in either arm have no ratio, and are left out.
    """
    draw = random.Random(0)  # noqa: S311 - a draw, no secret
    drawn = (_ratio(draw.choices(sums, k=len(sums))) for _ in range(_DRAWS))
    ratios = sorted(ratio for ratio in drawn if not isnan(ratio))
    tail = len(ratios) // 40
    return (ratios[tail], ratios[-max(1, tail)]) if ratios else (nan, nan)


def _ratio(sums: Sequence[tuple[int, int]]) -> float:
    won, had = sum(won for won, _ in sums), sum(had for _, had in sums)
    if not had:
        return inf if won else nan
    return float(won / had)
