"""How probable a model finds what it chose: the logarithm, in natural units, row by row."""

import math

import numpy as np
import torch

from engine.model.causal_lm import Allowed
from kernels.compiled import njit
from kernels.cpu_forward.rows import exponential

_LANES = 64


def log_probs(
    logits: torch.Tensor, rows: np.ndarray, chosen: np.ndarray, allowed: Allowed | None = None
) -> np.ndarray:
    """float32 [len(rows)]: of the ids that rows of `logits` [all rows, vocab] have `chosen`.

    `rows` and `chosen` int64 [len(rows)]. Where a constraint leaves few ids, the probability is
    among these. Each row is summed by itself in one order, so the bits are those of plain decoding.
    """
    values, places = _on_host(logits, rows)
    found = np.empty(len(rows), np.float32)
    if allowed is None:
        _among_all(values, places, chosen, found)
        return found
    for i, (place, row) in enumerate(zip(places.tolist(), rows.tolist(), strict=True)):
        ids = allowed[row]
        among = values[place] if ids is None else values[place, ids]
        found[i] = values[place, chosen[i]] - np.float32(log_sum_exp(among))
    return found


def _on_host(logits: torch.Tensor, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """float32 [any rows, vocab], and which are `rows`; of what is there already no copy is made."""
    if logits.device.type == "cpu" and logits.dtype == torch.float32:
        return logits.contiguous().numpy(), rows
    return logits[torch.from_numpy(rows)].float().cpu().numpy(), np.arange(len(rows))


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
    """Write the logarithms among all ids of a row."""
    for place in range(len(rows)):
        row = values[rows[place]]
        found[place] = row[chosen[place]] - np.float32(log_sum_exp(row))
