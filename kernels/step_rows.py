"""What the host knows of a step's rows, for operations in plain PyTorch: once for all layers."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np
import torch

CHUNK = 128  # text positions whose keys are reduced together
_TAIL = 2 * CHUNK  # a chunk that is not full yet, and up to 128 rows behind it


@dataclass(frozen=True, slots=True)
class Span:
    """One sequence of a step. All but the tensors are known on the host.

    Arena positions from `base` on hold `length` committed tokens; its rows begin at `first_row`.
    Of the step before, `num_kept` rows are to be moved behind position `kept_end`.
    `tail` int64 [U, 256]: the arena positions of what each of U runs reads behind the last full
    chunk; `hidden` bool [2 U, R, 1, 128]: what of it each row does not see.
    """

    place: int
    base: int
    length: int
    first_row: int
    num_rows: int
    num_kept: int
    kept_end: int
    tail: torch.Tensor
    hidden: torch.Tensor

    @property
    def rows(self) -> slice:
        """Its rows."""
        return slice(self.first_row, self.first_row + self.num_rows)

    @property
    def num_chunks(self) -> int:
        """Chunks that are committed as a whole, so that every row sees all of them."""
        return self.length // CHUNK


@dataclass(frozen=True, slots=True)
class StepRows:
    """All spans. `places` int64 [R]: each row's place in its text, 0 where it holds nothing."""

    spans: tuple[Span, ...]
    places: torch.Tensor

    @classmethod
    def plan(cls, arrays: Mapping[str, np.ndarray], device: torch.device) -> Self:
        """Plan for the arrays of a batch on the host, by their names."""
        sequences, lengths = arrays["sequences"], arrays["lengths"]
        places = np.where(sequences >= 0, lengths[sequences] + arrays["depths"], 0)
        counts = np.maximum(arrays["num_rows"], arrays["commit_counts"])
        spans = [_span(arrays, int(place), device) for place in counts.nonzero()[0]]
        return cls(tuple(spans), _on(places.astype(np.int64), device))


def _span(arrays: Mapping[str, np.ndarray], place: int, device: torch.device) -> Span:
    base, length, first_row, num_rows, num_kept, kept_length = (
        int(arrays[name][place])
        for name in (
            "bases",
            "lengths",
            "first_rows",
            "num_rows",
            "commit_counts",
            "commit_lengths",
        )
    )
    rows = slice(first_row, first_row + num_rows)
    tail, hidden = _tail(arrays, rows, base, length)
    kept_end = base + kept_length
    held = (_on(tail, device), _on(hidden, device))
    return Span(place, base, length, first_row, num_rows, num_kept, kept_end, *held)


def _tail(
    arrays: Mapping[str, np.ndarray], rows: slice, base: int, length: int
) -> tuple[np.ndarray, np.ndarray]:
    """`tail` and `hidden` of a `Span`; places that nobody sees repeat one that holds a key."""
    runs, depths = arrays["runs"][rows], arrays["depths"][rows]
    num_held, first_run = length % CHUNK, int(runs[0]) if len(runs) else 0
    num_runs = int(runs[-1]) - first_run + 1 if len(runs) else 0
    tail = np.full((num_runs, _TAIL), base + length, np.int64)
    tail[:, :num_held] = base + length - num_held + np.arange(num_held)
    num_rows = len(arrays["runs"])
    seen = np.zeros((num_runs, num_rows, _TAIL), bool)
    for run in range(num_runs):
        own = (runs == first_run + run).nonzero()[0]
        ends = num_held + depths[own]
        path = arrays["paths"][first_run + run, : int(depths[own[-1]]) + 1]
        tail[run, num_held : num_held + len(path)] = base + length + path
        seen[run, rows.start + own] = np.arange(_TAIL) <= ends[:, None]
    halves = seen.reshape(num_runs, num_rows, 2, CHUNK).transpose(0, 2, 1, 3)
    return tail, ~halves.reshape(2 * num_runs, num_rows, 1, CHUNK)


def _on(array: np.ndarray, device: torch.device) -> torch.Tensor:
    return torch.from_numpy(np.ascontiguousarray(array)).to(device)
