"""Trees become rows in preorder, and every row finds its ancestors by its run."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from engine.model.causal_lm import StepInput
from engine.model.gpu.batch_layout import KeptRows, batch_shapes, pack
from engine.model.token_tree import TokenTree
from tests.support.batches import POISON, Tree, build_batch
from tests.support.trees import random_tree

SEQUENCES = 4


def slot_at(base, length, kept=None):
    return SimpleNamespace(base=base, length=length, kept=kept)


def packed(steps, *, rows=128, group=7):
    shapes = batch_shapes(rows, SEQUENCES, group)
    arrays = {name: np.full(shape, -7, np.int32) for name, shape in shapes.items()}
    return arrays, pack(arrays, steps, group)


@st.composite
def some_steps(draw):
    sizes = draw(st.lists(st.integers(1, 30), min_size=1, max_size=SEQUENCES))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    kept = [draw(st.sampled_from([None, KeptRows(40 + n, np.array([0, 3, 5 + n]))])) for n in sizes]
    return [
        StepInput(slot_at(1000 * n, 50 + n, kept[n]), random_tree(rng, size, 1000))
        for n, size in enumerate(sizes)
    ]


def in_order(step, order):
    """The same sequence, its rows in another order."""
    place_of = {row: place for place, row in enumerate(order.tolist())} | {-1: -1}
    slot, parents = step.slot, [place_of[parent] for parent in step.tree.parents[order].tolist()]
    kept = {"commit": slot.kept.offsets, "commit_length": slot.kept.length} if slot.kept else {}
    tokens = step.tree.token_ids[order].tolist()
    return Tree(parents, slot.length, slot.base, tokens, **kept)


@given(some_steps(), st.sampled_from([1, 5, 7]))
def test_a_step_is_packed_as_it_is_built_plainly(steps, group):
    """Whatever an earlier step left in the same memory."""
    arrays, places = packed(steps, group=group)
    for step, place, first_row in zip(steps, places, arrays["first_rows"], strict=False):
        assert place.first_row == first_row
        assert sorted(place.order.tolist()) == list(range(step.tree.num_rows))
    trees = [in_order(step, order) for step, (_, order) in zip(steps, places, strict=True)]
    free = [None] * (SEQUENCES - len(trees))
    plain = build_batch([*trees, *free], group=group, capacity=128)
    for name, array in arrays.items():
        expected = getattr(plain, name)
        is_told = expected != POISON
        if name in ("bases", "lengths", "first_rows"):
            is_told = plain.num_rows > 0
        elif name == "commit_lengths":
            is_told = plain.commit_counts > 0
        elif name.startswith("block_") and name != "block_sequences":
            is_told = plain.block_sequences >= 0
        assert torch.equal(torch.from_numpy(array)[is_told], expected[is_told]), name


def test_the_likeliest_branch_stands_first_so_that_keeping_it_moves_nothing():
    tree = TokenTree(np.array([9, 1, 2, 3, 4]), np.array([-1, 0, 0, 1, 3], np.int32))
    _, [place] = packed([StepInput(slot_at(0, 0), tree)], rows=8)
    assert place.order.tolist() == [0, 1, 3, 4, 2]


@pytest.mark.parametrize("sizes", [[5], [2, 3], [1] * 5])
def test_rows_that_do_not_fit_are_refused(sizes):
    steps = [StepInput(slot_at(0, 0), TokenTree.chain(range(size))) for size in sizes]
    with pytest.raises(ValueError, match="do not fit"):
        packed(steps, rows=4)
