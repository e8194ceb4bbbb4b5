"""The few largest logits of each row: on a CPU many times faster than `torch.topk`."""

from typing import NamedTuple

import numpy as np
import torch
from torch.nn import functional

from kernels.compiled import njit
from kernels.cpu_forward import BLOCK


class Logits(NamedTuple):
    """Of the rows of a step, good until the model's next forward.

    `values` float32 [rows, vocab]. `peaks` float32 [rows, vocab / BLOCK, rounded up]: the largest
    of each block of values, where the model has found them on its way.
    """

    values: torch.Tensor
    peaks: np.ndarray | None = None


def top_tokens(logits: Logits, width: int) -> np.ndarray:
    """Ids int64 [rows, width] of the largest logits, best first, equals by id."""
    values = logits.values
    if values.device.type != "cpu":
        return torch.topk(values, width, dim=-1).indices.cpu().numpy()
    peaks = _peaks(values) if logits.peaks is None else logits.peaks
    top = np.zeros((len(values), width), np.int64)
    _fill(np.ascontiguousarray(values.numpy()), peaks, top, np.empty(width, np.float32))
    return top


def _peaks(values: torch.Tensor) -> np.ndarray:
    whole = functional.pad(values, (0, -values.shape[1] % BLOCK), value=float("-inf"))
    peaks: np.ndarray = whole.unflatten(1, (-1, BLOCK)).amax(dim=2).numpy()
    return peaks


@njit("void(float32[::1], int64, int64, int64[::1], float32[::1])", cache=True)
def _insert(values: np.ndarray, start: int, end: int, top: np.ndarray, best: np.ndarray) -> None:
    """Put the columns from `start` to `end` that beat the last of `best` in their places there."""
    for column in range(start, end):
        place = len(best)
        while place > 0 and values[column] > best[place - 1]:
            place -= 1
        if place < len(best):
            best[place + 1 :] = best[place:-1].copy()
            top[place + 1 :] = top[place:-1].copy()
            best[place] = values[column]
            top[place] = column


@njit("void(float32[:, ::1], float32[:, ::1], int64[:, ::1], float32[::1])", cache=True)
def _fill(rows: np.ndarray, peaks: np.ndarray, top: np.ndarray, best: np.ndarray) -> None:
    """Look only into blocks whose largest value is among the `width` largest of their kind."""
    for row in range(rows.shape[0]):
        best[:] = -np.inf
        _insert(peaks[row], 0, peaks.shape[1], top[row], best)
        least = best[-1]
        best[:] = -np.inf
        for block in range(peaks.shape[1]):
            if peaks[row, block] >= least:
                end = min((block + 1) * BLOCK, rows.shape[1])
                _insert(rows[row], block * BLOCK, end, top[row], best)
