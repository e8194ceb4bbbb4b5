"""What the host knows of a step's rows, for operations in plain PyTorch: once for all layers."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np
import torch

CHUNK = 128  # text positions whose keys are reduced together
_OF_SEQUENCE = ("bases", "lengths", "first_rows", "num_rows", "commit_counts", "commit_lengths")


@dataclass(frozen=True, slots=True)
class Span:
    """One sequence of a step. All but the tensors are known on the host.

    Arena positions from `base` on hold `length` committed tokens. Its `rows` are `num_rows` of the step.
    Of the step before, `num_kept` rows are to be moved behind position `kept_end`.
    `tail` int64 [U, C, 128]: the arena positions of what each of U runs reads behind the last full
    chunk; `hidden` bool [U C, R, 1, 128]: what of it each row does not see.
    """

    place: int
    base: int
    length: int
    rows: slice
    num_rows: int
    num_kept: int
    kept_end: int
    tail: torch.Tensor
    hidden: torch.Tensor

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
        int(arrays[name][place]) for name in _OF_SEQUENCE
    )
    rows = slice(first_row, first_row + num_rows)
    held = (_on(one, device) for one in _tail(arrays, rows, base, length))
    return Span(place, base, length, rows, num_rows, num_kept, base + kept_length, *held)


def _tail(
    arrays: Mapping[str, np.ndarray], rows: slice, base: int, length: int
) -> tuple[np.ndarray, np.ndarray]:
    """`tail` and `hidden` of a `Span`; places that no row sees repeat one that holds a key."""
    runs, depths = arrays["runs"][rows], arrays["depths"][rows]
    num_held, first_run = length % CHUNK, int(runs[0]) if len(runs) else 0
    num_runs = int(runs[-1]) - first_run + 1 if len(runs) else 0
    num_rows = len(arrays["runs"])
    num_chunks = 1 + -(-num_rows // CHUNK)  # one that is not full yet, and the rows behind it
    tail = np.full((num_runs, num_chunks * CHUNK), base + length, np.int64)
    tail[:, :num_held] = base + length - num_held + np.arange(num_held)
    seen = np.zeros((num_runs, num_rows, num_chunks * CHUNK), bool)
    for run in range(num_runs):
        own = (runs == first_run + run).nonzero()[0]
        ends = num_held + depths[own]
        path = arrays["paths"][first_run + run, : int(depths[own[-1]]) + 1]
        tail[run, num_held : num_held + len(path)] = base + length + path
        seen[run, rows.start + own] = np.arange(tail.shape[1]) <= ends[:, None]
    chunks = seen.reshape(num_runs, num_rows, num_chunks, CHUNK).transpose(0, 2, 1, 3)
    hidden = ~chunks.reshape(num_runs * num_chunks, num_rows, 1, CHUNK)
    return tail.reshape(num_runs, num_chunks, CHUNK), hidden


def _on(array: np.ndarray, device: torch.device) -> torch.Tensor:
    return torch.from_numpy(np.ascontiguousarray(array)).to(device)
