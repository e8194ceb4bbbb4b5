"""Steps of a model that are computed one after the other, when their outputs are wanted."""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from engine.model.causal_lm import NUM_TOP, Allowed, StepInput, StepOutput, check_room
from engine.model.sampling import choose, log_probs
from engine.model.token_tree import MAX_ROWS, verify
from kernels.compiled import njit
from kernels.cpu_forward import BLOCK

_KV_BYTES = 240 * 1024 * 1024  # 4,388 tokens of 1.5b: two prompts of 2048 and what is typed


class Logits(NamedTuple):
    """Of the rows of a step, good until the model's next forward: `values` float32 [rows, vocab].

    `peaks` float32 [rows, vocab / BLOCK, rounded up] are the largest of each block, where known.
    """

    values: np.ndarray
    peaks: np.ndarray | None = None


@dataclass(frozen=True, slots=True)
class EagerFlight:
    """A `Flight` in which nothing goes on before `finish`."""

    steps: Sequence[StepInput]
    logits_of: Callable[[StepInput], Logits]

    def finish(self) -> list[StepOutput | None]:
        """Run the model, choose, and walk the path that agrees."""
        return [None if step.is_dropped else self._output(step) for step in self.steps]

    def _output(self, step: StepInput) -> StepOutput | None:
        began = time.perf_counter()
        logits = self.logits_of(step)
        if not step.has_head:
            return None
        tree = step.tree
        values, top = logits.values, top_tokens(logits, NUM_TOP)
        if step.sampling.temperature == 0.0 and step.allowed is None:
            chosen = np.ascontiguousarray(top[:, 0])  # what `choose` would say
        else:
            chosen = choose(values, step.slot.length + 1 + tree.depths, step.sampling, step.allowed)
        path = verify(tree.token_ids, tree.parents, chosen)
        return StepOutput(
            chosen=chosen,
            path=path,
            log_probs=_on_path(values, path, chosen, step.allowed),
            top_tokens=lambda: top,
            ms=1000 * (time.perf_counter() - began),
            step_rows=tree.num_rows,
            logits=values.copy() if step.wants_logits else None,
        )


class EagerModel(ABC):
    """A `CausalModel` of one sequence, which pads no steps and reserves no memory."""

    row_buckets: tuple[int, ...] = ()
    most_rows = most_read_rows = MAX_ROWS
    max_sequences = 1
    checked = ""

    def kv_bytes(self, tokens: int) -> int:  # noqa: ARG002 - not every model knows
        """Return the most memory to keep prompts in."""
        return _KV_BYTES

    def begin(self, steps: Sequence[StepInput]) -> EagerFlight:
        """Check that the steps' rows have room; the work is done when their outputs are wanted."""
        check_room(steps, self.most_read_rows)
        return EagerFlight(steps, self._forward)

    @abstractmethod
    def _forward(self, step: StepInput) -> Logits:
        """Run the rows and write their keys and values. Without a head the logits are not used."""


def _on_path(
    logits: np.ndarray, path: np.ndarray, chosen: np.ndarray, allowed: Allowed | None
) -> np.ndarray:
    """float32 [rows]: nan for all other rows."""
    found = np.full(len(chosen), np.nan, np.float32)
    found[path] = log_probs(logits, path, chosen[path], allowed)
    return found


def top_tokens(logits: Logits, width: int) -> np.ndarray:
    """Ids int64 [rows, width] of the largest logits, best first, equals by id."""
    values, peaks = logits
    if peaks is None:
        peaks = np.maximum.reduceat(values, range(0, values.shape[1], BLOCK), axis=1)
    top = np.zeros((len(values), width), np.int64)
    _fill(values, peaks, top, np.empty(width, np.float32))
    return top


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
