"""Packs token trees as the kernels read them: rows in preorder, cut into runs and row blocks."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from engine.model.causal_lm import StepInput
from engine.model.token_tree import MAX_ROWS, TokenTree
from kernels.batch import ROW_TILE, max_blocks
from kernels.compiled import njit

_BY_ROW = ("tokens", "parents", "sequences", "depths", "runs")
_BY_SEQUENCE = ("bases", "lengths", "first_rows", "num_rows", "commit_counts", "commit_lengths")
_BY_BLOCK = ("block_sequences", "block_starts", "block_first_runs", "block_end_runs")


class KeptRows(NamedTuple):
    """Rows of a slot's last step that stand: `length` tokens were committed before them."""

    length: int
    offsets: np.ndarray  # int, ascending, behind the first row of the sequence


class PackedRows(NamedTuple):
    """Where a sequence's rows went: `order[i]` is the tree's row at place i behind `first_row`."""

    first_row: int
    order: np.ndarray


def batch_shapes(rows: int, sequences: int, group: int) -> dict[str, tuple[int, ...]]:
    """Of the int32 arrays of a `BatchMetadata` with room for so many; `group` query heads of a kv head."""
    return {
        **dict.fromkeys(_BY_ROW, (rows,)),
        **dict.fromkeys(_BY_SEQUENCE, (sequences,)),
        **dict.fromkeys(_BY_BLOCK, (max_blocks(rows, sequences, group),)),
        # Beyond a tree's rows there are chains alone, a run each.
        "paths": (rows if rows <= MAX_ROWS else sequences, rows),
        "commit_rows": (sequences, MAX_ROWS),
    }


def pack(arrays: dict[str, np.ndarray], steps: Sequence[StepInput], group: int) -> list[PackedRows]:
    """Fill arrays of `batch_shapes`. Raises ValueError where the rows do not fit."""
    total = sum(step.tree.num_rows for step in steps)
    if total > len(arrays["tokens"]) or len(steps) > len(arrays["bases"]):
        raise ValueError(f"{total} rows of {len(steps)} sequences do not fit")
    for name in ("tokens", "depths", "runs", "num_rows", "commit_counts"):
        arrays[name][:] = 0
    for name in ("parents", "sequences", "block_sequences"):
        arrays[name][:] = -1
    packed, row, run, block = [], 0, 0, 0
    for place, step in enumerate(steps):
        count = step.tree.num_rows
        order, runs = _pack_tree(arrays, step.tree, place, row, run)
        _set_sequence(arrays, step, place, row)
        block = _add_blocks(arrays, place, row, count, group, block)
        packed.append(PackedRows(row, order))
        row, run = row + count, run + runs
    return packed


def _pack_tree(
    arrays: dict[str, np.ndarray], tree: TokenTree, place: int, row: int, run: int
) -> tuple[np.ndarray, int]:
    """Fill a sequence's rows; return their order and the number of runs."""
    rows = slice(row, row + tree.num_rows)
    order = np.empty(tree.num_rows, np.int64)
    of_rows = (arrays[name][rows] for name in ("parents", "depths", "runs"))
    num_runs = _in_preorder(tree.parents, order, *of_rows, arrays["paths"], row, run)
    arrays["tokens"][rows] = tree.token_ids[order]
    arrays["sequences"][rows] = place
    return order, num_runs


def _set_sequence(arrays: dict[str, np.ndarray], step: StepInput, place: int, row: int) -> None:
    slot = step.slot
    arrays["bases"][place] = slot.base
    arrays["lengths"][place] = slot.length
    arrays["first_rows"][place] = row
    arrays["num_rows"][place] = step.tree.num_rows
    if slot.kept is not None:
        count = len(slot.kept.offsets)
        arrays["commit_counts"][place] = count
        arrays["commit_lengths"][place] = slot.kept.length
        arrays["commit_rows"][place, :count] = slot.kept.offsets


def _add_blocks(
    arrays: dict[str, np.ndarray], place: int, row: int, count: int, group: int, block: int
) -> int:
    """Cut a sequence's packed rows into blocks; return the number of the next block."""
    starts = np.arange(0, count * group, ROW_TILE)
    blocks = slice(block, block + len(starts))
    last_rows = np.minimum((starts + ROW_TILE - 1) // group, count - 1)
    arrays["block_sequences"][blocks] = place
    arrays["block_starts"][blocks] = starts
    arrays["block_first_runs"][blocks] = arrays["runs"][row + starts // group]
    arrays["block_end_runs"][blocks] = arrays["runs"][row + last_rows] + 1
    return block + len(starts)


@njit(
    "int64(int32[::1], int64[::1], int32[::1], int32[::1], int32[::1], int32[:, ::1], int64, int64)",
    cache=True,
)
def _in_preorder(
    tree_parents: np.ndarray,
    order: np.ndarray,
    parents: np.ndarray,
    depths: np.ndarray,
    runs: np.ndarray,
    paths: np.ndarray,
    first_row: int,
    first_run: int,
) -> int:
    """Visit the tree's rows, a first branch before the next one, and write what the kernels read.

    A run begins wherever a row's parent is not the row visited just before.
    """
    count = len(tree_parents)
    last_child, sibling = np.full(count, -1), np.full(count, -1)
    for row in range(1, count):
        sibling[row] = last_child[tree_parents[row]]
        last_child[tree_parents[row]] = row
    stack, height = np.zeros(count, np.int64), 1
    place = np.full(count, -1)  # where each row of the tree went
    path = np.zeros(count, np.int64)
    run = first_run - 1
    for at in range(count):
        height -= 1
        row = stack[height]
        order[at], place[row] = row, at
        parent = -1 if row == 0 else place[tree_parents[row]]
        depth = 0 if parent < 0 else depths[parent] + 1
        if at == 0 or parent != at - 1:
            run += 1
            for above in range(depth):
                paths[run, above] = path[above]
        path[depth] = at
        paths[run, depth] = at
        parents[at] = -1 if parent < 0 else first_row + parent
        depths[at], runs[at] = depth, run
        child = last_child[row]  # the last one goes to the bottom, so the first is met first
        while child >= 0:
            stack[height] = child
            height += 1
            child = sibling[child]
    return run - first_run + 1
