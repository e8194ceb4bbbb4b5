"""How probable a model finds what it chose: the logarithm, in natural units, row by row."""

import math
from collections.abc import Iterable

import numba
import numpy as np
import torch

from engine.model.causal_lm import Allowed
from kernels.cpu_forward.rows import exponential

_LANES = 64


def log_probs(
    logits: torch.Tensor, rows: np.ndarray, chosen: np.ndarray, allowed: Allowed | None = None
) -> np.ndarray:
    """float32 [len(rows)]: of the ids that rows of `logits` [all rows, vocab] have `chosen`.

    `rows` and `chosen` int64 [len(rows)]. Where a constraint leaves few ids, the probability is
    among these. Each row is summed by itself in one order, so the bits are those of plain decoding.
    """
    found = np.empty(len(rows), np.float32)
    if allowed is None and _is_on_host(logits):
        _log_probs(logits.contiguous().numpy(), rows, chosen, found)
        return found
    picked = zip(_on_host(logits, rows), rows.tolist(), chosen.tolist(), strict=True)
    for place, (values, row, token_id) in enumerate(picked):
        ids = None if allowed is None else allowed[row]
        among = values if ids is None else values[ids]
        found[place] = values[token_id] - log_sum_exp(among)
    return found


def _on_host(logits: torch.Tensor, rows: np.ndarray) -> Iterable[np.ndarray]:
    """Rows of `logits`, float32 [vocab] each; of those that are there already no copy is made."""
    if _is_on_host(logits):
        return map(logits.contiguous().numpy().__getitem__, rows.tolist())
    picked: np.ndarray = logits[torch.from_numpy(rows)].float().cpu().numpy()
    return picked


def _is_on_host(logits: torch.Tensor) -> bool:
    return logits.device.type == "cpu" and logits.dtype == torch.float32


def log_sum_exp(values: np.ndarray) -> float:
    """log(sum(exp(values))) of float32 [any number but 0]."""
    largest = values.max()
    return float(largest) + math.log(_sum_exp(values, largest))


@numba.njit(
    "float64(float32[::1], float32)", fastmath={"contract"}, error_model="numpy", cache=True
)
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


@numba.njit("void(float32[:, ::1], int64[::1], int64[::1], float32[::1])", cache=True)
def _log_probs(logits: np.ndarray, rows: np.ndarray, chosen: np.ndarray, found: np.ndarray) -> None:
    """Write the logarithms for rows that stand one behind the other."""
    for place in range(len(rows)):
        values = logits[rows[place]]
        largest = values.max()
        total = np.float32(largest + math.log(_sum_exp(values, largest)))
        found[place] = values[chosen[place]] - total
