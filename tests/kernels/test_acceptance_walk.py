"""Choice and walk: the best token of each row, and the longest drafted path that agrees."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kernels.acceptance_walk import TOP
from kernels.acceptance_walk.pytorch import acceptance_walk as twin
from kernels.acceptance_walk.triton_kernel import acceptance_walk
from tests.support.batches import Tree, build_batch, preorder_parents
from tests.support.walks import answers_of, best_of, random_best


def answers(best, batch, function=acceptance_walk):
    return answers_of(best, batch, function)


def assert_equal_answers(best, batch):
    actual, expected = answers(best, batch), answers(best, batch, twin)
    for name in ("chosen", "top", "accepted"):
        assert torch.equal(getattr(actual, name), getattr(expected, name)), name
    torch.testing.assert_close(actual.log_probs, expected.log_probs, rtol=1e-6, atol=1e-5)
    for sequence, accepted in enumerate(expected.accepted.tolist()):
        path, other = actual.path[sequence, :accepted], expected.path[sequence, :accepted]
        assert torch.equal(path, other)


def walked(output, sequence):
    return output.path[sequence, : output.accepted[sequence]].tolist()


@pytest.mark.parametrize("blocks", [1, 2, 7, 8, 64, 2374])
def test_equals_the_formula(blocks, device):
    batch = build_batch([Tree(preorder_parents(1, 3))], capacity=5, device=device)
    assert_equal_answers(random_best(blocks, 5, device), batch)


def test_of_equal_scores_the_lowest_id_wins(device):
    batch = build_batch([Tree([-1])], device=device)
    best = random_best(100, 1, device)
    best.scores.fill_(0.5)
    output = answers(best, batch)
    assert output.top[0].tolist() == best.ids[:TOP, 0].tolist()


def test_a_block_ruled_out_still_has_its_rank(device):
    """All scores but one are -inf, as under a grammar: no block is named twice."""
    best = random_best(9, 1, device)
    best.scores.fill_(-torch.inf)
    best.scores[5] = 1.0
    output = answers(best, build_batch([Tree([-1])], device=device))
    blocks = (output.top[0] // 64).tolist()
    assert blocks == [5, 0, 1, 2, 3, 4, 6, 7]


def test_the_probability_is_a_share_of_all_tokens(device):
    """Of two blocks of one token each, whose logits are 1 and 0."""
    batch = build_batch([Tree([-1])], device=device)
    found = answers(best_of([3], device), batch).log_probs.item()
    assert found == pytest.approx(-math.log(1 + math.exp(-1)), abs=1e-6)


def test_walks_down_the_branch_that_agrees(device):
    """Beside it a free place, and a tree whose root alone stands."""
    first = Tree([-1, 0, 1, 2, 1, 4, 0], tokens=[9, 10, 11, 12, 13, 14, 15])
    second = Tree([-1, 0], tokens=[9, 10])
    batch = build_batch([first, None, second], capacity=12, device=device)
    output = answers(best_of([10, 13, 99, 99, 14, 77, 99, 11, 10, 0, 0, 0], device), batch)
    assert output.accepted.tolist() == [4, 0, 1]
    assert [walked(output, place) for place in range(3)] == [[0, 1, 4, 5], [], [0]]


def test_of_two_children_that_agree_the_first_is_taken(device):
    tree = Tree([-1, 0, 1, 0, 3], tokens=[1, 5, 6, 5, 7])
    output = answers(best_of([5, 7, 0, 7, 0], device), build_batch([tree], device=device))
    assert walked(output, 0) == [0, 1]


@settings(deadline=None, max_examples=20)
@given(
    rows=st.lists(st.integers(1, 12), min_size=1, max_size=3),
    seed=st.integers(0, 999),
    padding=st.integers(0, 5),
)
def test_walks_as_the_formula_says(rows, seed, padding, device):
    """Few different tokens, so that much agrees."""
    torch.manual_seed(seed)
    trees = [
        Tree(preorder_parents(seed, num), tokens=torch.randint(0, 3, (num,)).tolist())
        for num in rows
    ]
    capacity = sum(rows) + padding
    batch = build_batch([*trees, None], capacity=capacity, device=device)
    assert_equal_answers(best_of(torch.randint(0, 3, (capacity,)).tolist(), device), batch)
