"""Which token follows each row of logits: the largest, or a draw whose noise is keyed by position.

A draw is `argmax(logits / T + Gumbel(seed, position, id))` over the ids that the constraint, top-k
and top-p leave, in this order. The noise depends on nothing but its key, and a row is handled by
itself, so the text of a seed is the same whatever was drafted (Gumbel-max: Maddison et al. 2014).
"""

import math
from collections.abc import Sequence

import numba
import numpy as np
import torch

from engine.config import Sampling

_MAX_NOISE = 38.0  # above the largest Gumbel value of a 52-bit uniform, 36.74
# An id that trails by d needs 1 - u < 1 - exp(-exp(-d)) < exp(-d) to win: one look-up of
# exp(-floor(d)) spares nearly all ids their two logarithms.
_LOSING_TAIL = np.exp(-np.arange(int(_MAX_NOISE) + 1, dtype=np.float64))

# Per row the ids that a constraint leaves (ascending int64, not empty), or None for all.
Allowed = Sequence[np.ndarray | None]


def choose(
    logits: torch.Tensor,
    positions: Sequence[int] | np.ndarray,
    sampling: Sampling,
    allowed: Allowed | None = None,
) -> np.ndarray:
    """Token ids int64 [rows] for `logits` float32 [rows, vocab].

    `positions` [rows] are absolute: the place in the sequence that each drawn token will have.
    """
    rows = logits.cpu().numpy()
    ids_of = allowed if allowed is not None else [None] * len(rows)
    drawn = (
        _choose_row(row, int(position), sampling, ids)
        for row, position, ids in zip(rows, positions, ids_of, strict=True)
    )
    return np.fromiter(drawn, np.int64, len(rows))


def _choose_row(
    row: np.ndarray, position: int, sampling: Sampling, allowed: np.ndarray | None
) -> int:
    values = row if allowed is None else row[allowed]
    if sampling.temperature == 0.0:
        place = int(np.argmax(values))  # the first of equals: the lowest id
        return place if allowed is None else int(allowed[place])
    kept = _nucleus(values, sampling)
    ids = np.arange(len(row)) if allowed is None else allowed
    if kept is not None:
        values, ids = values[kept], ids[kept]
    key = _noise_key(np.uint64(sampling.seed % 2**64), position)
    return int(_draw(values, ids, 1.0 / sampling.temperature, key, _LOSING_TAIL))


def _nucleus(values: np.ndarray, sampling: Sampling) -> np.ndarray | None:
    """Ascending places that top-k, then top-p keep; None when both keep all."""
    kept = None
    if 0 < sampling.top_k < len(values):
        kept = _top_k(values, sampling.top_k)
    if sampling.top_p < 1.0:
        pool = values if kept is None else values[kept]
        best = _top_p(pool, sampling.temperature, sampling.top_p)
        kept = best if kept is None else kept[best]
    return kept


def _top_k(values: np.ndarray, k: int) -> np.ndarray:
    threshold = np.partition(values, -k)[-k]
    places = np.flatnonzero(values >= threshold)
    order = np.argsort(-values[places], kind="stable")[:k]  # of equals the lowest ids stay
    return np.sort(places[order])


def _top_p(values: np.ndarray, temperature: float, top_p: float) -> np.ndarray:
    """The fewest most probable places whose probabilities reach `top_p` together."""
    weights = np.exp((values - values.max()) / np.float32(temperature))
    total = float(weights.sum(dtype=np.float64))
    # Ids below (1 - p) / V hold less than 1 - p together, so the nucleus lies within the others.
    places = np.flatnonzero(weights >= total * (1.0 - top_p) / len(values))
    order = places[np.argsort(-weights[places], kind="stable")]
    mass = np.cumsum(weights[order], dtype=np.float64)
    num_kept = int(np.searchsorted(mass, top_p * total)) + 1
    return np.sort(order[:num_kept])


@numba.njit("uint64(uint64)", cache=True, inline="always")
def _mix(x: np.uint64) -> np.uint64:
    """The finaliser of splitmix64: every bit of the result depends on every bit of `x`."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@numba.njit("uint64(uint64, int64)", cache=True)
def _noise_key(seed: np.uint64, position: int) -> np.uint64:
    """One stream of noise per seed and position."""
    key: np.uint64 = _mix(_mix(seed + np.uint64(0x9E3779B97F4A7C15)) ^ np.uint64(position))
    return key


@numba.njit("float64(uint64, int64)", cache=True, inline="always")
def _uniform(key: np.uint64, token_id: int) -> float:
    """Strictly between 0 and 1, 52 bits; the half keeps both ends out."""
    counter = np.uint64(token_id + 1) * np.uint64(0x9E3779B97F4A7C15)
    bits = _mix(key + counter) >> np.uint64(12)
    return (float(bits) + 0.5) * 2.0**-52


@numba.njit("int64(float32[:], int64[:], float64, uint64, float64[:])", cache=True)
def _draw(
    values: np.ndarray, ids: np.ndarray, scale: float, key: np.uint64, losing_tail: np.ndarray
) -> int:
    """The id with the largest `scale * value + Gumbel(key, id)`."""
    first = np.argmax(values)  # starting at the likeliest, nearly all others fail the cheap test
    chosen = ids[first]
    best = scale * values[first] - math.log(-math.log(_uniform(key, ids[first])))
    for place in range(len(ids)):
        behind = best - scale * values[place]
        if not behind < _MAX_NOISE:  # also true of NaN and of minus infinity
            continue
        uniform = _uniform(key, ids[place])
        if behind > 0.0 and 1.0 - uniform >= losing_tail[int(behind)]:
            continue
        score = scale * values[place] - math.log(-math.log(uniform))
        if score > best:
            best = score
            chosen = ids[place]
    return int(chosen)
