"""The operations in PyTorch against the formulas, at odd shapes and in memory full of NaN."""

import numpy as np
import pytest
import torch

from kernels.acceptance_walk.reference import acceptance_walk as reference_walk
from kernels.batch_attention.reference import batch_attention as reference_attention
from kernels.kv_commit.reference import kv_commit as reference_commit
from kernels.lm_head import Best, SamplingNoise
from kernels.lm_head.reference import lm_head as reference_head
from kernels.operations import PORTABLE, REFERENCE
from kernels.portable.rows import rows_of
from kernels.residual import ResidualStream
from kernels.scratch import Scratch
from kernels.step_rows import CHUNK, StepRows
from kernels.weight import pack
from tests.support.batches import Tree, build_batch, chain, preorder_parents
from tests.support.walks import answers_of, best_of, random_best

HEADS, KV_HEADS, DIM = 6, 2, 16
SCRATCH = Scratch.allocate(0, 0, torch.device("cpu"))
TREE = preorder_parents(4, 11)


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(1)


def arena(trees, positions=1200):
    """NaN wherever no tree has a key."""
    held = torch.full((2, KV_HEADS, positions, DIM), torch.nan)
    for tree in trees:
        there = slice(tree.base, tree.base + tree.length + len(tree.parents))
        held[:, :, there] = torch.randn(2, KV_HEADS, there.stop - there.start, DIM)
    return held


def attended(operation, queries, held, batch):
    out = torch.full_like(queries, 7.0)
    operation(queries, *held, batch, SCRATCH, out)
    return out


@pytest.mark.parametrize("length", [0, 1, 5, 127, 128, 129, 256, 383, 700])
@pytest.mark.parametrize("parents", [[-1], chain(13), TREE], ids=["row", "chain", "tree"])
def test_attention_equals_the_formula_behind_a_text_of_any_length(length, parents):
    trees = [Tree(parents, length, base=64)]
    held = arena(trees)
    batch = build_batch(trees, group=HEADS // KV_HEADS, capacity=16)
    queries = torch.randn(16, HEADS, DIM)
    expected = attended(reference_attention, queries, held, batch)
    actual = attended(PORTABLE.batch_attention, queries, held, batch)
    torch.testing.assert_close(actual, expected, rtol=1e-5, atol=1e-5)


def test_sequences_see_their_own_keys():
    trees = [Tree(TREE, 300), None, Tree([-1], 2, base=512), Tree(chain(4), 140, base=640)]
    held = arena([tree for tree in trees if tree])
    batch = build_batch(trees, group=HEADS // KV_HEADS, capacity=17)
    queries = torch.randn(17, HEADS, DIM)
    expected = attended(reference_attention, queries, held, batch)
    actual = attended(PORTABLE.batch_attention, queries, held, batch)
    torch.testing.assert_close(actual, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("length", [3, 120, 250])
def test_a_row_has_the_same_bits_in_a_tree_and_behind_its_committed_path(length):
    """A key of it stands in the tail of its run, or in a chunk that is whole by then."""
    tree = Tree(preorder_parents(2, 16, bushy=0.2), length)
    held, queries = arena([tree]), torch.randn(16, HEADS, DIM)
    group = HEADS // KV_HEADS
    out = attended(
        PORTABLE.batch_attention, queries, held, build_batch([tree], group=group, capacity=16)
    )
    for row in range(16):
        path = tree.path(row)
        alone = held.clone()
        for place, offset in enumerate(path):
            alone[:, :, length + place] = held[:, :, length + offset]
        alone[:, :, length + len(path) :] = torch.nan
        batch = build_batch([Tree([-1], length + len(path) - 1)], group=group, capacity=16)
        first = torch.cat([queries[row : row + 1], torch.randn(15, HEADS, DIM)])
        again = attended(PORTABLE.batch_attention, first, alone, batch)
        assert torch.equal(again[0], out[row]), row


@pytest.mark.parametrize("outputs", [1, 64, 129, 700])
@pytest.mark.parametrize("is_drawn", [False, True])
def test_the_head_equals_the_formula(outputs, is_drawn):
    rows, blocks = 5, -(-outputs // 64)
    stream = ResidualStream(
        residual=torch.randn(rows, 96),
        normed=torch.randn(rows, 96),
        squares=torch.rand(2, rows) * 40,
        eps=1e-6,
    )
    weight = pack(torch.randn(outputs, 96), "float")
    scales, keys = torch.full((rows,), 0.7), torch.randint(0, 2**30, (rows, 2)).int()
    noise = SamplingNoise(scales, torch.ones(rows), keys) if is_drawn else None
    found = []
    for operation in (reference_head, PORTABLE.lm_head):
        numbers = [torch.full((blocks, rows), torch.nan) for _ in range(4)]
        ids = torch.zeros(blocks, rows, dtype=torch.int32)
        best = Best(numbers[0], ids, *numbers[1:])
        logits = torch.full((rows, outputs), torch.nan)
        operation(stream, weight, noise, best, logits)
        found.append((best, logits))
    (expected, expected_logits), (actual, logits) = found
    assert torch.equal(actual.ids, expected.ids)
    torch.testing.assert_close(logits, expected_logits)
    for name in ("scores", "logits", "maxima", "sums"):
        torch.testing.assert_close(getattr(actual, name), getattr(expected, name))


def test_of_equal_scores_the_lowest_id_wins():
    batch = build_batch([Tree([-1])])
    best = random_best(100, 1, "cpu")
    best.scores.fill_(0.5)
    assert answers_of(best, batch, PORTABLE.acceptance_walk).chosen[0] == best.ids[0, 0]


@pytest.mark.parametrize("blocks", [1, 7, 300])
def test_the_choice_equals_the_formula(blocks):
    batch = build_batch([Tree(TREE)], capacity=16)
    best = random_best(blocks, 16, "cpu")
    expected = answers_of(best, batch, reference_walk)
    actual = answers_of(best, batch, PORTABLE.acceptance_walk)
    assert torch.equal(actual.chosen, expected.chosen)
    assert torch.equal(actual.top, expected.top)
    torch.testing.assert_close(actual.log_probs, expected.log_probs)


@pytest.mark.parametrize("seed", range(8))
def test_the_walk_equals_the_formula(seed):
    """Few tokens, so that rows agree, and siblings may have one token."""
    rng = np.random.default_rng(seed)
    trees = [
        Tree(preorder_parents(seed + place, rows), tokens=rng.integers(0, 3, rows).tolist())
        for place, rows in enumerate((9, 4, 1))
    ]
    batch = build_batch([*trees[:2], None, trees[2]], capacity=16)
    best = best_of(rng.integers(0, 3, 16).tolist(), "cpu")
    expected = answers_of(best, batch, reference_walk)
    actual = answers_of(best, batch, PORTABLE.acceptance_walk)
    assert actual.accepted.tolist() == expected.accepted.tolist()
    for sequence, accepted in enumerate(expected.accepted.tolist()):
        assert torch.equal(actual.path[sequence, :accepted], expected.path[sequence, :accepted])


def test_the_commit_equals_the_formula():
    trees = [
        Tree([-1], 9, commit=[0, 2, 5], commit_length=6),
        Tree([-1], 5, base=64),
        Tree(chain(3), 40, base=128, commit=[1], commit_length=39),
    ]
    expected = torch.randn(2, 3, KV_HEADS, 256, DIM)
    actual = expected.clone()
    batch = build_batch(trees)
    reference_commit(expected[0], expected[1], batch)
    PORTABLE.kv_commit(actual[0], actual[1], batch)
    assert torch.equal(actual, expected)


@pytest.mark.parametrize("quantization", ["float", "fp8", "int4"])
def test_products_equal_the_formulas(quantization):
    inputs, rows = 128, 7
    weight = pack(torch.randn(200, inputs), quantization)
    back = pack(torch.randn(inputs, 100 if quantization == "float" else 128), quantization)
    streams = [
        ResidualStream(
            torch.ones(rows, inputs), torch.ones(rows, inputs), torch.ones(2, rows), 1e-6
        )
        for _ in range(2)
    ]
    generator = torch.Generator().manual_seed(3)
    given = torch.randn(rows, back.num_inputs, generator=generator)
    norm_weight = torch.rand(inputs, generator=generator)
    outs = []
    for operations, stream in zip((REFERENCE, PORTABLE), streams, strict=True):
        operations.skinny_matmul(given, back, norm_weight, stream, SCRATCH)
        out = torch.empty(rows, 100)
        operations.gate_up(stream, weight, out, SCRATCH)
        outs.append(out)
    torch.testing.assert_close(outs[1], outs[0], rtol=1e-4, atol=1e-4)
    for name in ("residual", "normed", "squares"):
        torch.testing.assert_close(getattr(streams[1], name), getattr(streams[0], name))


def test_what_the_host_knows_is_taken_from_the_batch_where_it_brings_nothing():
    tree = Tree(TREE, 3 * CHUNK + 5, base=64)
    batch = build_batch([None, tree], capacity=16)
    step = rows_of(batch)
    (span,) = step.spans
    assert (span.place, span.base, span.length, span.num_chunks) == (1, 64, 3 * CHUNK + 5, 3)
    assert span.rows == slice(0, len(TREE))
    assert step.places[: len(TREE)].tolist() == [389 + len(tree.path(r)) - 1 for r in range(11)]
    assert isinstance(step, StepRows)
