"""Tree attention: the formula, and a row's bits whatever other rows ride along."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kernels.tree_attention import CHUNK, TreePlan, tree_attention
from kernels.tree_attention.reference import tree_attention as reference

HEADS = {"group 7": (14, 2), "group 6": (12, 2), "group 5": (10, 2), "group 1": (4, 4)}


def random_parents(rows: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.array([-1, *(rng.integers(0, row) for row in range(1, rows))], np.int32)


def random_case(shape, length, rows, seed=0):
    heads, kv_heads = shape
    generator = torch.Generator().manual_seed(seed)
    slots = -(-(length + rows) // CHUNK) * CHUNK
    queries = torch.randn(rows, heads, 64, generator=generator)
    keys, values = torch.randn(2, kv_heads, slots, 64, generator=generator)
    return queries, keys, values


@pytest.mark.parametrize("heads", HEADS.values(), ids=HEADS)
@pytest.mark.parametrize(("length", "rows"), [(0, 1), (1, 3), (63, 17), (500, 40), (511, 9)])
def test_equals_the_formula(heads, length, rows):
    queries, keys, values = random_case(heads, length, rows)
    plan = TreePlan(random_parents(rows, seed=length), length)
    expected = reference(queries, keys, values, plan)
    actual = tree_attention(queries, keys, values, plan)
    torch.testing.assert_close(actual, expected, rtol=1e-5, atol=1e-5)


def test_leaves_keys_and_values_as_they_were():
    queries, keys, values = random_case((14, 2), 100, 20)
    before = keys.clone(), values.clone()
    tree_attention(queries, keys, values, TreePlan(random_parents(20, seed=3), 100))
    assert torch.equal(keys, before[0])
    assert torch.equal(values, before[1])


@settings(deadline=None, max_examples=40)
@given(
    heads=st.sampled_from(sorted(HEADS.values())),
    length=st.integers(0, 1100),
    rows=st.integers(1, 24),
    seed=st.integers(0, 99),
)
def test_a_row_has_the_bits_of_plain_decoding(heads, length, rows, seed):
    """The last row of a random tree, and the same text decoded row by row, agree to the bit."""
    queries, keys, values = random_case(heads, length, rows, seed)
    plan = TreePlan(random_parents(rows, seed), length)
    row = rows - 1
    path = plan.runs[-1].path.tolist()
    assert path[-1] == row, "the last row is a leaf, and leaves are met in order"
    depth = len(path) - 1
    plain_keys, plain_values = keys.clone(), values.clone()
    for held, plain in ((keys, plain_keys), (values, plain_values)):
        plain[:, length : length + len(path)] = held[:, [length + step for step in path]]
    alone = TreePlan(np.array([-1], np.int32), length + depth)
    expected = tree_attention(queries[row:], plain_keys, plain_values, alone)
    assert torch.equal(tree_attention(queries, keys, values, plan)[row:], expected)


def test_runs_answer_every_row_once():
    plan = TreePlan(random_parents(60, seed=5), 0)
    answered = torch.cat([run.rows for run in plan.runs])
    assert sorted(answered.tolist()) == list(range(60))
