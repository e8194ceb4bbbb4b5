"""Which token follows each row of logits, and the natural logarithm of its probability.

It is the largest, or a draw whose noise is keyed by position. A draw is `argmax(logits / T + Gumbel(seed, position, id))` over the ids that the constraint leaves.
The noise depends on nothing but its key, and a row is handled by itself, so the text of a seed is
the same whatever was drafted (Gumbel-max: Maddison et al. 2014).
"""

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from engine.config import Sampling
from engine.model.causal_lm import Allowed
from kernels.compiled import njit
from kernels.cpu_forward.rows import exponential

_BLOCK = 128  # ids that are tested together
_MARGIN = 0.01  # of the test's exponent, for its rounding
_EXPONENT = 8388608.0  # a step of a float32's exponent, as an integer: 2^23
_LANES = 64


def choose(
    logits: np.ndarray,
    positions: Sequence[int] | np.ndarray,
    sampling: Sampling,
    allowed: Allowed | None = None,
) -> np.ndarray:
    """Token ids int64 [rows] for `logits` float32 [rows, vocab].

    `positions` [rows] are absolute: the place in the sequence that each drawn token will have.
    """
    ids_of = allowed if allowed is not None else [None] * len(logits)
    drawn = (
        _choose_row(row, int(position), sampling, ids)
        for row, position, ids in zip(logits, positions, ids_of, strict=True)
    )
    return np.fromiter(drawn, np.int64, len(logits))


def _choose_row(
    row: np.ndarray, position: int, sampling: Sampling, allowed: np.ndarray | None
) -> int:
    values = row if allowed is None else row[allowed]
    if sampling.temperature == 0.0:
        place = int(np.argmax(values))  # the first of equals: the lowest id
        return place if allowed is None else int(allowed[place])
    ids = _all_ids(len(row)) if allowed is None else allowed.astype(np.uint32)
    key = _noise_key(np.uint64(sampling.seed % 2**64), position)
    return int(_draw(values, ids, int(np.argmax(values)), 1.0 / sampling.temperature, key))


@lru_cache(maxsize=2)
def _all_ids(vocab_size: int) -> np.ndarray:
    return np.arange(vocab_size, dtype=np.uint32)


@njit("uint64(uint64)", cache=True, inline="always")
def _mix(x: np.uint64) -> np.uint64:
    """The finaliser of splitmix64: every bit of the result depends on every bit of `x`."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@njit("uint64(uint64, int64)", cache=True)
def _noise_key(seed: np.uint64, position: int) -> np.uint64:
    """One stream of noise per seed and position."""
    key: np.uint64 = _mix(_mix(seed + np.uint64(0x9E3779B97F4A7C15)) ^ np.uint64(position))
    return key


def noise_keys(seed: int, positions: np.ndarray) -> np.ndarray:
    """int32 [rows, 2] for int64 `positions` [rows], as a GPU's kernels read them."""
    keys: np.ndarray = _noise_keys(np.uint64(seed % 2**64), positions.astype(np.int64))
    return keys.view(np.int32).reshape(-1, 2)


@njit("uint64[::1](uint64, int64[::1])", cache=True)
def _noise_keys(seed: np.uint64, positions: np.ndarray) -> np.ndarray:
    keys = np.empty(len(positions), np.uint64)
    for row in range(len(positions)):
        keys[row] = _noise_key(seed, positions[row])
    return keys


@njit("int32(uint64, uint32)", cache=True, inline="always")
def _head(key: np.uint64, token_id: np.uint32) -> np.int32:
    """31 random bits; arithmetic of 32 bits, so that many ids are hashed at once."""
    x = np.uint32(token_id * np.uint32(0x9E3779B1) + np.uint32(key))
    x = np.uint32((x ^ (x >> np.uint32(16))) * np.uint32(0x7FEB352D))
    x = np.uint32(x ^ (x >> np.uint32(15)) ^ np.uint32(key >> np.uint64(32)))
    x = np.uint32(x * np.uint32(0x846CA68B))
    return np.int32((x ^ (x >> np.uint32(16))) >> np.uint32(1))


@njit("float64(uint64, uint32)", cache=True)
def _noise(key: np.uint64, token_id: np.uint32) -> float:
    """A Gumbel variable, -log(-log(1 - t)): t is uniform, `_head` and 21 more bits behind it."""
    rest = _mix(key ^ (np.uint64(token_id) << np.uint64(32))) >> np.uint64(43)
    tail = (float(_head(key, token_id)) * 2097152.0 + float(rest) + 0.5) * 2.0**-52
    return -math.log(-math.log1p(-tail))


@njit("int64(float32[::1], uint32[::1], int64, float64, uint64)", cache=True)
def _draw(values: np.ndarray, ids: np.ndarray, first: int, scale: float, key: np.uint64) -> int:
    """The id with the largest `scale * value + noise`; `first` is the place of the largest value.

    An id that trails the best score by d wins only with t < 1 - exp(-exp(-d)) < exp(-d), which
    nearly none has. The test compares t's bits as a float with those of a bound on exp(-d):
    2^n (1 + f) >= 2^(n + f) is the float whose bits are (n + f + 127) 2^23.
    """
    # Starting at the likeliest, nearly all others fail the test.
    chosen, best = ids[first], scale * values[first] + _noise(key, ids[first])
    slope = np.float32(scale * _EXPONENT / math.log(2.0))
    for start in range(0, len(ids), _BLOCK):
        end = min(start + _BLOCK, len(ids))
        # 31: the head is t times 2^31
        level = np.float32((127.0 + 31.0 + _MARGIN - best / math.log(2.0)) * _EXPONENT)
        may_win = False
        for place in range(start, end):  # no branch, so the compiler tests many at once
            bound = max(np.float32(0.0), values[place] * slope + level)
            head = np.float32(_head(key, ids[place]))
            may_win |= bool(head.view(np.int32) < np.int32(bound))
        if may_win:
            for place in range(start, end):
                score = scale * values[place] + _noise(key, ids[place])
                if score > best:
                    chosen, best = ids[place], score
    return int(chosen)


def log_probs(
    logits: np.ndarray, rows: np.ndarray, chosen: np.ndarray, allowed: Allowed | None = None
) -> np.ndarray:
    """float32 [len(rows)]: of the ids that rows of `logits` [all rows, vocab] have `chosen`.

    `rows` and `chosen` int64 [len(rows)]; the probability is among the `allowed` ids. Each row is
    summed by itself in one order, so the bits are those of plain decoding.
    """
    found = np.empty(len(rows), np.float32)
    if allowed is None:
        _among_all(logits, rows, chosen, found)
        return found
    for i, row in enumerate(rows.tolist()):
        ids = allowed[row]
        among = logits[row] if ids is None else logits[row, ids]
        found[i] = logits[row, chosen[i]] - np.float32(log_sum_exp(among))
    return found


@njit("float64(float32[::1], float32)", fastmath={"contract"}, error_model="numpy", cache=True)
def _sum_exp(values: np.ndarray, largest: np.float32) -> float:
    """The sum of exp(values - largest), in lanes: the compiler may not change the order of sums."""
    lanes = np.zeros(_LANES, np.float32)
    whole = len(values) - len(values) % _LANES
    for start in range(0, whole, _LANES):
        for lane in range(_LANES):
            lanes[lane] += exponential(values[start + lane] - largest)
    total = 0.0
    for lane in range(_LANES):
        total += lanes[lane]
    for place in range(whole, len(values)):
        total += exponential(values[place] - largest)
    return total


@njit("float64(float32[::1])", cache=True)
def log_sum_exp(values: np.ndarray) -> float:
    """log(sum(exp(values))) of float32 [any number but 0]."""
    largest = values.max()
    found: float = largest + math.log(_sum_exp(values, largest))
    return found


@njit("void(float32[:, ::1], int64[::1], int64[::1], float32[::1])", cache=True)
def _among_all(values: np.ndarray, rows: np.ndarray, chosen: np.ndarray, found: np.ndarray) -> None:
    for place in range(len(rows)):
        row = values[rows[place]]
        found[place] = row[chosen[place]] - np.float32(log_sum_exp(row))
