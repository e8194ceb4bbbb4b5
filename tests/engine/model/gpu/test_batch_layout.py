"""Trees become rows in preorder, and every row finds its ancestors by its run."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from engine.model.causal_lm import StepInput
from engine.model.gpu.batch_layout import BatchLayout, Kept, SlotRange
from engine.model.token_tree import TokenTree
from kernels.batch import ROW_TILE, BatchMetadata
from tests.support.trees import path_to, random_tree


def as_batch(arrays):
    tensors: dict[str, Any] = {name: torch.from_numpy(array) for name, array in arrays.items()}
    return BatchMetadata(**tensors)


def filled(layout, value):
    return {name: np.full(shape, value, np.int32) for name, shape in layout.shapes.items()}


def packed(trees, *, rows, sequences, group=7):
    layout = BatchLayout(rows, sequences, group)
    arrays = filled(layout, -7)  # what an earlier step left
    steps = [StepInput(SlotRange(1000 * n, 50 + n), tree) for n, tree in enumerate(trees)]
    places = layout.pack(arrays, steps)
    return as_batch(arrays), places


@st.composite
def some_trees(draw):
    sizes = draw(st.lists(st.integers(1, 30), min_size=1, max_size=4))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    return [random_tree(rng, size, 1000) for size in sizes]


@given(some_trees(), st.sampled_from([1, 5, 7]))
def test_every_row_finds_its_path_by_its_run(trees, group):
    batch, places = packed(trees, rows=128, sequences=4, group=group)
    for number, (tree, (first_row, order)) in enumerate(zip(trees, places, strict=True)):
        assert sorted(order.tolist()) == list(range(tree.num_rows))
        for place, row in enumerate(order.tolist()):
            at, path = first_row + place, path_to(tree, row)
            assert batch.sequences[at] == number
            assert batch.tokens[at] == tree.token_ids[row]
            assert batch.depths[at] == len(path) - 1
            offsets = batch.paths[batch.runs[at], : len(path)]
            assert order[offsets.numpy()].tolist() == path
            parent = int(batch.parents[at])
            assert parent == -1 if place == 0 else order[parent - first_row] == tree.parents[row]


@given(some_trees())
def test_runs_never_fall_and_each_is_a_range_of_rows(trees):
    batch, places = packed(trees, rows=128, sequences=4)
    runs = batch.runs[: sum(len(order) for _, order in places)].tolist()
    assert runs[0] == 0
    assert all(later - run in (0, 1) for run, later in pairwise(runs))


@given(some_trees(), st.sampled_from([1, 5, 7]))
def test_blocks_cover_each_packed_row_once_and_know_its_runs(trees, group):
    batch, places = packed(trees, rows=128, sequences=4, group=group)
    covered = []
    for block, sequence in enumerate(batch.block_sequences.tolist()):
        if sequence < 0:
            continue
        first_row, start = places[sequence].first_row, int(batch.block_starts[block])
        assert start % ROW_TILE == 0
        count = len(places[sequence].order)
        rows = [packed // group for packed in range(start, start + ROW_TILE)]
        rows = sorted({row for row in rows if row < count})
        runs = batch.runs[first_row + rows[0] : first_row + rows[-1] + 1]
        assert batch.block_first_runs[block] == runs.min()
        assert batch.block_end_runs[block] == runs.max() + 1
        covered += [(sequence, packed) for packed in range(start, min(start + 64, count * group))]
    expected = [(n, p) for n, tree in enumerate(trees) for p in range(tree.num_rows * group)]
    assert covered == expected


def test_the_likeliest_branch_stands_first_so_that_keeping_it_moves_nothing():
    tree = TokenTree(np.array([9, 1, 2, 3, 4]), np.array([-1, 0, 0, 1, 3], np.int32))
    _, [place] = packed([tree], rows=8, sequences=1)
    assert place.order.tolist() == [0, 1, 3, 4, 2]


def test_what_holds_nothing_says_so_whatever_stood_there():
    batch, _ = packed([TokenTree.chain([5, 6])], rows=8, sequences=4)
    assert batch.sequences.tolist() == [0, 0, *[-1] * 6]
    assert batch.tokens.tolist() == [5, 6, *[0] * 6]
    assert batch.parents[2:].tolist() == [-1] * 6
    assert batch.num_rows.tolist() == [2, 0, 0, 0]
    assert batch.commit_counts.tolist() == [0] * 4
    assert (batch.block_sequences[1:] == -1).all()


def test_what_a_step_keeps_goes_along():
    layout = BatchLayout(8, 1, 7)
    arrays = filled(layout, 0)
    kept = Kept(40, np.array([0, 3, 5]))
    step = StepInput(SlotRange(64, 43, kept), TokenTree.chain([1]))
    layout.pack(arrays, [step])
    batch = as_batch(arrays)
    assert (int(batch.commit_counts[0]), int(batch.commit_lengths[0])) == (3, 40)
    assert batch.commit_rows[0, :3].tolist() == [0, 3, 5]
    assert (int(batch.bases[0]), int(batch.lengths[0])) == (64, 43)


@pytest.mark.parametrize("count", [1, 2])
def test_rows_that_do_not_fit_are_refused(count):
    layout = BatchLayout(4, 1, 7)
    trees = [TokenTree.chain([1, 2, 3, 4, 5][: 6 - 3 * (count - 1)])] * count
    with pytest.raises(ValueError, match="do not fit"):
        layout.pack(
            filled(layout, 0),
            [StepInput(SlotRange(0, 0), tree) for tree in trees],
        )
