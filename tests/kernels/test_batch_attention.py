"""Batch attention: the formula, and a row's bits whatever rides along and whatever is committed."""

from dataclasses import replace

import pytest
import torch
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from kernels import batch_attention as sizes
from kernels.batch import BatchMetadata
from kernels.batch_attention import batch_attention as twin
from kernels.batch_attention.triton_kernel import batch_attention
from kernels.kv_commit import kv_commit
from kernels.scratch import Scratch
from tests.support.batches import POISON, Tree, build_batch, chain, preorder_parents
from tests.support.fixed_order import products_in_one_order

SHAPES = {  # heads, kv heads, head dim
    "group 7": (7, 1, 64),
    "group 6": (12, 2, 128),
    "group 5": (5, 1, 128),
    "group 1": (2, 2, 64),
}
# On a GPU products of float32 take no tensor cores, and what they hold does not fit in registers.
TYPES = (torch.bfloat16,) if torch.cuda.is_available() else (torch.float32, torch.bfloat16)
TOLERANCES = {torch.float32: 1e-5, torch.bfloat16: 1e-2}
UNTOUCHED = 7.0


@pytest.fixture(autouse=True, scope="module")
def _one_order():
    with products_in_one_order():
        yield


class Step:
    """Random queries of some trees, and an arena that is NaN wherever none of them has a key."""

    def __init__(
        self,
        trees,
        shape,
        dtype,
        device,
        *,
        capacity=None,
        seed=0,
        operation=batch_attention,
        rows=None,
    ):
        """`rows` of each of its batches, where bits are the same at one number of rows alone."""
        (self.heads, self.kv_heads, self.dim), self.dtype = shape, dtype
        self.device, self.operation, self.rows = device, operation, rows
        self.generator = torch.Generator().manual_seed(seed)
        held = [tree for tree in trees if tree]
        positions = max(tree.base + tree.length + len(tree.parents) for tree in held) + 1
        self.keys = self.nothing(self.kv_heads, positions, self.dim)
        self.values = self.nothing(self.kv_heads, positions, self.dim)
        for tree in held:
            line = slice(tree.base, tree.base + tree.length + len(tree.parents))
            for arena in (self.keys, self.values):
                arena[:, line] = self.random(self.kv_heads, line.stop - line.start, self.dim)
        self.batch = self.build(trees, capacity)
        self.num_rows = sum(len(tree.parents) for tree in held)
        self.queries = self.nothing(self.batch.capacity, self.heads, self.dim)
        self.queries[: self.num_rows] = self.random(self.num_rows, self.heads, self.dim)

    def random(self, *shape):
        return torch.randn(shape, generator=self.generator).to(self.device, self.dtype)

    def nothing(self, *shape):
        return torch.full(shape, torch.nan, dtype=self.dtype, device=self.device)

    def build(self, trees, capacity=None) -> BatchMetadata:
        group = self.heads // self.kv_heads
        capacity = self.rows or capacity
        return build_batch(trees, group=group, capacity=capacity, device=self.device)

    def attend(self, *, batch=None, keys=None, values=None, queries=None):
        """The kernel's answer, after a look at what it must leave alone."""
        batch = self.batch if batch is None else batch
        keys = self.keys if keys is None else keys
        values = self.values if values is None else values
        queries = self.queries if queries is None else queries
        partials, _ = sizes.scratch_size(batch.num_blocks, self.kv_heads, self.dim)
        memory = torch.full([partials + 8], torch.nan, device=self.device)
        memory[partials:] = UNTOUCHED
        counted = torch.full([1], POISON, dtype=torch.int32, device=self.device)
        before = keys.clone(), values.clone()
        out = torch.full_like(queries, UNTOUCHED)
        scratch = Scratch(memory[:partials], counted)
        self.operation(queries, keys, values, batch, scratch, out)
        assert (memory[partials:] == UNTOUCHED).all()
        for arena, kept in zip((keys, values), before, strict=True):
            assert torch.equal(arena.nan_to_num(), kept.nan_to_num())
        assert (out[batch.sequences < 0] == UNTOUCHED).all()
        return out

    def alone(self, tree: Tree, row: int, first_row: int = 0):
        """The tree's row `row` again with all before it committed, and as the end of a chain."""
        path = tree.path(row)
        commit = replace(tree, commit=path, commit_length=tree.length)
        keys, values = self.keys.clone()[None], self.values.clone()[None]
        kv_commit(keys, values, self.build([commit]))
        here = {"keys": keys[0], "values": values[0]}
        single = self.build([Tree([-1], tree.length + len(path) - 1, tree.base)])
        line = self.build([Tree(chain(len(path)), tree.length, tree.base)], len(path) + 2)
        queries = self.nothing(line.capacity, self.heads, self.dim)
        queries[: len(path)] = self.queries[[first_row + offset for offset in path]]
        query = self.nothing(single.capacity, self.heads, self.dim)
        query[0] = self.queries[first_row + row]
        return (
            self.attend(batch=single, queries=query, **here)[0],
            self.attend(batch=line, queries=queries, **here)[len(path) - 1],
        )

    def assert_equals_the_formula(self, trees):
        """softmax(q K^T / sqrt(d)) V over the text and the row's own path, row by row."""
        expected = torch.full_like(self.queries, UNTOUCHED)
        rows = [(tree, row) for tree in trees if tree for row in range(len(tree.parents))]
        for place, (tree, row) in enumerate(rows):
            seen = [*range(tree.length), *(tree.length + offset for offset in tree.path(row))]
            at = tree.base + torch.tensor(seen, device=self.device)
            query = self.queries[place].double().view(self.kv_heads, -1, self.dim)
            shares = torch.softmax(query @ self.keys[:, at].double().mT / self.dim**0.5, dim=-1)
            expected[place] = (shares @ self.values[:, at].double()).view(self.heads, self.dim)
        error = TOLERANCES[self.dtype]
        torch.testing.assert_close(self.attend(), expected, rtol=error, atol=error)


BATCHES = {
    "one row": [Tree([-1], length=5)],
    "an empty cache": [Tree(preorder_parents(0, 3)), None, Tree([-1], base=8)],
    "bushy": [Tree(preorder_parents(1, 12, bushy=0.8), length=63, base=3)],
    "deep": [Tree(preorder_parents(2, 9, bushy=0.2), length=600), Tree([-1], length=64, base=620)],
    "several blocks": [None, Tree(preorder_parents(3, 40), length=130, base=9), Tree([-1, 0], 1)],
    "whole tiles": [Tree(chain(2), length=64), Tree([-1, 0, 0], length=65, base=70)],
}


@pytest.mark.parametrize("operation", [twin, batch_attention], ids=["pytorch", "kernel"])
@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize(
    ("shape", "trees"),
    [
        ("group 7", "one row"),
        ("group 7", "bushy"),
        ("group 7", "several blocks"),
        ("group 6", "deep"),
        ("group 5", "whole tiles"),
        ("group 5", "an empty cache"),
        ("group 1", "deep"),
    ],
)
def test_equals_the_formula(shape, trees, dtype, operation, device):
    trees = BATCHES[trees]
    step = Step(trees, SHAPES[shape], dtype, device, capacity=44, operation=operation)
    step.assert_equals_the_formula(trees)


@pytest.mark.parametrize("length", [0, 1, 5, 127, 128, 129, 256, 383, 700])
@pytest.mark.parametrize("rows", [1, 11])
def test_by_pytorch_a_text_of_any_length_is_read_in_chunks(length, rows):
    trees = [Tree(preorder_parents(4, rows), length, base=64)]
    step = Step(trees, (6, 2, 16), torch.float32, "cpu", capacity=16, operation=twin)
    step.assert_equals_the_formula(trees)


@pytest.mark.parametrize("length", [3, 120, 250])
def test_by_pytorch_the_end_of_a_chunk_in_a_branch_changes_no_bit(length):
    """A key stands in the tail of its run, or in a chunk that is whole by then."""
    tree = Tree(preorder_parents(2, 16, bushy=0.2), length)
    step = Step([tree], (6, 2, 16), torch.float32, "cpu", operation=twin, rows=16)
    assert_bits_of_plain_decoding(step, tree, range(16))


def assert_bits_of_plain_decoding(step, tree, rows):
    out = step.attend()
    for row in rows:
        for again in step.alone(tree, row):
            assert torch.equal(again, out[row]), row


@pytest.mark.usefixtures("few_splits")
@pytest.mark.parametrize(
    ("length", "dtype"),
    [
        *((length, torch.bfloat16) for length in (0, 60, 62, 64, 66)),
        *((length, dtype) for dtype in TYPES for length in (61, 63)),
    ],
)
def test_a_tile_boundary_anywhere_in_a_branch_changes_no_bit(length, dtype, device):
    tree = Tree([-1, 0, 1, 2, 1, 4, 5, 0], length)
    step = Step([tree], SHAPES["group 7"], dtype, device, seed=length)
    assert_bits_of_plain_decoding(step, tree, (3, 6))


@pytest.mark.usefixtures("few_splits")
@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_rows_of_every_block_have_the_bits_of_plain_decoding(dtype, device):
    """110 packed rows: a branch that starts in one block ends in the other, and in another tile."""
    parents = [*chain(9), 2, *range(9, 14), 6, *range(15, 20), 0]
    tree = Tree(parents, length=118, base=5)
    step = Step([tree], SHAPES["group 5"], dtype, device)
    assert_bits_of_plain_decoding(step, tree, (0, 13, 20, 21))


@pytest.mark.usefixtures("few_splits")
@settings(deadline=None, max_examples=12, phases=[Phase.generate])  # shrinking takes minutes
@given(
    shape=st.sampled_from(["group 7", "group 5"]),
    dtype=st.sampled_from(TYPES),
    length=st.integers(0, 200),
    rows=st.integers(1, 14),
    bushy=st.sampled_from([0.2, 0.5, 0.8]),
    seed=st.integers(0, 99),
    data=st.data(),
)
def test_a_row_has_the_bits_of_plain_decoding(
    shape, dtype, length, rows, bushy, seed, data, device
):
    tree = Tree(preorder_parents(seed, rows, bushy=bushy), length, base=seed)
    row = data.draw(st.integers(0, rows - 1))
    neighbour = Tree(preorder_parents(seed + 1, 3), length=seed, base=seed + length + rows)
    trees = data.draw(st.sampled_from([[tree], [neighbour, tree], [None, tree, neighbour]]))
    padding = data.draw(st.integers(0, 9))
    step = Step(trees, SHAPES[shape], dtype, device, capacity=rows + 3 + padding, seed=seed)
    first_row = len(neighbour.parents) if trees[0] is neighbour else 0
    out = step.attend()[first_row + row]
    for again in step.alone(tree, row, first_row):
        assert torch.equal(again, out)
