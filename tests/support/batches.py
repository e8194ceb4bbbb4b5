"""Token trees as a `BatchMetadata`, built in a slow and simple way."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from engine.model.gpu.batch_layout import batch_shapes
from kernels.batch import ROW_TILE, BatchMetadata

POISON = 2**30  # an entry that nothing may read


@dataclass(frozen=True)
class Tree:
    """One sequence of a step.

    `parents` of its rows count from its first row, -1 at the root, in preorder. `length` tokens are
    committed. `commit` holds offsets of the last step's kept rows, which stood behind
    `commit_length` tokens. `base` is that of its slot.
    """

    parents: Sequence[int]
    length: int = 0
    base: int = 0
    tokens: Sequence[int] | None = None
    commit: Sequence[int] = field(default=())
    commit_length: int = 0

    def path(self, row: int) -> list[int]:
        path = []
        while row >= 0:
            path.append(row)
            row = self.parents[row]
        return path[::-1]

    @property
    def runs(self) -> list[int]:
        """Return the run of each row; one starts where a row does not follow the one before."""
        runs: list[int] = []
        for row, parent in enumerate(self.parents):
            runs.append(runs[-1] + (parent != row - 1) if runs else 0)
        return runs


def preorder_parents(seed: int, rows: int, *, bushy: float = 0.5) -> list[int]:
    """Return a random tree in preorder: each row follows the one before it, or one above that."""
    rng = np.random.default_rng(seed)
    parents = [-1]
    for row in range(1, rows):
        parent = row - 1
        while parent > 0 and rng.random() < bushy:
            parent = parents[parent]
        parents.append(parent)
    return parents


def chain(rows: int) -> list[int]:
    return list(range(-1, rows - 1))


def build_batch(
    places: Sequence[Tree | None],
    *,
    group: int = 1,
    capacity: int | None = None,
    device: torch.device | str = "cpu",
) -> BatchMetadata:
    """Return the trees' rows one tree after the other, then padding; None is a free place."""
    num_rows = sum(len(tree.parents) for tree in places if tree)
    capacity = capacity or max(num_rows, 1)
    arrays = _empty_arrays(capacity, len(places), group)
    row = run = block = 0
    for place, tree in enumerate(places):
        if tree:
            _add_sequence(arrays, place, tree, row)
            _add_rows(arrays, place, tree, row, run)
            block = _add_blocks(arrays, place, tree, run, block, group)
            row += len(tree.parents)
            run += tree.runs[-1] + 1
    tensors: dict[str, Any] = {
        name: torch.from_numpy(array).to(device) for name, array in arrays.items()
    }
    return BatchMetadata(**tensors)


def _empty_arrays(rows: int, sequences: int, group: int) -> dict[str, np.ndarray]:
    """Return empty arrays: zeros, -1 for "none", and poison in entries that nothing may read."""
    nothing = dict.fromkeys(("parents", "sequences", "block_sequences"), -1)
    nothing |= dict.fromkeys(("paths", "commit_rows"), POISON)
    shapes = batch_shapes(rows, sequences, group)
    return {name: np.full(shape, nothing.get(name, 0), np.int32) for name, shape in shapes.items()}


def _add_sequence(arrays: dict[str, np.ndarray], place: int, tree: Tree, first_row: int) -> None:
    arrays["bases"][place] = tree.base
    arrays["lengths"][place] = tree.length
    arrays["first_rows"][place] = first_row
    arrays["num_rows"][place] = len(tree.parents)
    arrays["commit_counts"][place] = len(tree.commit)
    arrays["commit_lengths"][place] = tree.commit_length
    arrays["commit_rows"][place, : len(tree.commit)] = tree.commit


def _add_rows(
    arrays: dict[str, np.ndarray], place: int, tree: Tree, first_row: int, first_run: int
) -> None:
    tokens = tree.tokens or [0] * len(tree.parents)
    for offset, (parent, run) in enumerate(zip(tree.parents, tree.runs, strict=True)):
        row, path = first_row + offset, tree.path(offset)
        arrays["tokens"][row] = tokens[offset]
        arrays["parents"][row] = first_row + parent if parent >= 0 else -1
        arrays["sequences"][row] = place
        arrays["depths"][row] = len(path) - 1
        arrays["runs"][row] = first_run + run
        arrays["paths"][first_run + run, : len(path)] = path


def _add_blocks(
    arrays: dict[str, np.ndarray], place: int, tree: Tree, first_run: int, block: int, group: int
) -> int:
    """Cut the tree into blocks from `block` on; return the next one."""
    for start in range(0, len(tree.parents) * group, ROW_TILE):
        last = min(start + ROW_TILE, len(tree.parents) * group) - 1
        arrays["block_sequences"][block] = place
        arrays["block_starts"][block] = start
        arrays["block_first_runs"][block] = first_run + tree.runs[start // group]
        arrays["block_end_runs"][block] = first_run + tree.runs[last // group] + 1
        block += 1
    return block
