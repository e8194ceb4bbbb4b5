"""The operations in PyTorch against their formulas in float64, at odd shapes, in memory full of NaN."""

import numpy as np
import pytest
import torch

from kernels.lm_head import SamplingNoise
from kernels.lm_head.pytorch import gumbel
from kernels.operations import PORTABLE
from kernels.scratch import Scratch
from kernels.step_rows import CHUNK
from kernels.weight import QUANTIZATIONS
from tests.support.batches import Tree, build_batch, chain, preorder_parents
from tests.support.products import (
    EPS,
    random_noise,
    random_rows,
    random_weight,
    run_gate_up,
    run_lm_head,
    run_project_qkv,
    run_skinny_matmul,
    squares_of,
)
from tests.support.walks import answers_of, best_of, random_best

HEADS, KV_HEADS, DIM = 6, 2, 16
GROUP = HEADS // KV_HEADS
SCRATCH = Scratch.allocate(0, 0, torch.device("cpu"))
CPU = torch.device("cpu")
TREE = preorder_parents(4, 11)
UNTOUCHED = 7.0


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


def attended(queries, held, places):
    batch = build_batch(places, group=GROUP, capacity=len(queries))
    out = torch.full_like(queries, UNTOUCHED)
    PORTABLE.batch_attention(queries, held[0], held[1], batch, SCRATCH, out)
    return out


def attention_by_formula(queries, held, trees):
    """softmax(q K^T / sqrt(d)) V over the text and the row's own path, row by row."""
    out = torch.full_like(queries, UNTOUCHED)
    rows = [(tree, row) for tree in trees for row in range(len(tree.parents))]
    for place, (tree, row) in enumerate(rows):
        seen = [*range(tree.length), *(tree.length + offset for offset in tree.path(row))]
        keys, values = held[:, :, tree.base + torch.tensor(seen)].double()
        query = queries[place].double().view(KV_HEADS, GROUP, DIM)
        shares = torch.softmax(query @ keys.mT / DIM**0.5, dim=-1)
        out[place] = (shares @ values).view(HEADS, DIM)
    return out


@pytest.mark.parametrize("length", [0, 1, 5, 127, 128, 129, 256, 383, 700])
@pytest.mark.parametrize("parents", [[-1], chain(13), TREE], ids=["row", "chain", "tree"])
def test_attention_equals_the_formula_behind_a_text_of_any_length(length, parents):
    trees = [Tree(parents, length, base=64)]
    held, queries = arena(trees), torch.randn(16, HEADS, DIM)
    expected = attention_by_formula(queries, held, trees)
    torch.testing.assert_close(attended(queries, held, trees), expected, rtol=1e-5, atol=1e-5)


def test_sequences_see_their_own_keys():
    places = [Tree(TREE, 300), None, Tree([-1], 2, base=512), Tree(chain(4), 140, base=640)]
    trees = [tree for tree in places if tree]
    held, queries = arena(trees), torch.randn(17, HEADS, DIM)
    expected = attention_by_formula(queries, held, trees)
    torch.testing.assert_close(attended(queries, held, places), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("length", [3, 120, 250])
def test_a_row_has_the_same_bits_in_a_tree_and_behind_its_committed_path(length):
    """A key of it stands in the tail of its run, or in a chunk that is whole by then."""
    tree = Tree(preorder_parents(2, 16, bushy=0.2), length)
    held, queries = arena([tree]), torch.randn(16, HEADS, DIM)
    out = attended(queries, held, [tree])
    for row in range(16):
        path = tree.path(row)
        alone = held.clone()
        for place, offset in enumerate(path):
            alone[:, :, length + place] = held[:, :, length + offset]
        alone[:, :, length + len(path) :] = torch.nan
        first = torch.cat([queries[row : row + 1], torch.randn(15, HEADS, DIM)])
        again = attended(first, alone, [Tree([-1], length + len(path) - 1)])
        assert torch.equal(again[0], out[row]), row


def by_formula(x, weight):
    """(x W^T) / sqrt(sum of squares / H + eps) in float64."""
    factors = torch.rsqrt(squares_of(x).double().sum(dim=0) / x.shape[1] + EPS)
    return x.double() @ weight.dense().double().T * factors[:, None]


def assert_close(actual, expected, error=2e-5):
    torch.testing.assert_close(actual.double(), expected.double(), rtol=error, atol=error)


@pytest.mark.parametrize("outputs", [1, 64, 129, 700])
@pytest.mark.parametrize("is_drawn", [False, True])
def test_the_head_equals_the_formula(outputs, is_drawn):
    weight = random_weight(outputs, 96, "float", torch.float32, CPU)
    noise = random_noise(5, CPU) if is_drawn else None
    found = run_lm_head(PORTABLE.lm_head, weight, 5, torch.float32, noise, keep_logits=True)
    logits = by_formula(random_rows(5, 96, torch.float32, CPU), weight)
    assert_close(found["logits"], logits)
    scores = logits if noise is None else scores_by_formula(logits, noise)
    for block, tokens in enumerate(torch.arange(outputs).split(64)):
        best = scores[:, tokens].argmax(dim=1)
        assert torch.equal(found["ids"][:, block], tokens[best].int())
        total = (found["maxima"] + found["sums"].log())[:, block]
        assert_close(total, logits[:, tokens].logsumexp(dim=1))
        assert_close(found["scores"][:, block], scores[:, tokens].amax(dim=1))
        assert_close(found["best_logits"][:, block], logits.gather(1, tokens[best][:, None])[:, 0])


def scores_by_formula(logits, noise: SamplingNoise):
    drawn = gumbel(noise.keys, logits.shape[1]).double()
    return logits * noise.logit_scales[:, None] + noise.noise_scales[:, None] * drawn


def test_of_equal_scores_the_lowest_id_wins():
    best = random_best(100, 1, "cpu")
    best.scores.fill_(0.5)
    output = answers_of(best, build_batch([Tree([-1])]), PORTABLE.acceptance_walk)
    assert output.chosen[0] == best.ids[0, 0]
    assert output.top[0].tolist() == best.ids[:8, 0].tolist()


@pytest.mark.parametrize("blocks", [1, 7, 300])
def test_the_choice_equals_the_formula(blocks):
    best = random_best(blocks, 16, "cpu")
    found = answers_of(best, build_batch([Tree(TREE)], capacity=16), PORTABLE.acceptance_walk)
    ranks = best.scores.argsort(dim=0, descending=True)
    top = best.ids.gather(0, ranks)[:8].T
    assert torch.equal(found.top[:, : top.shape[1]], top)
    assert (found.top[:, top.shape[1] :] == -1).all()
    assert torch.equal(found.chosen, top[:, 0])
    totals = (best.maxima.double() + best.sums.double().log()).logsumexp(dim=0)
    assert_close(found.log_probs, best.logits.gather(0, ranks[:1])[0] - totals)


@pytest.mark.parametrize("seed", range(8))
def test_the_walk_follows_the_rows_that_agree(seed):
    """Few tokens, so that rows agree, and siblings may have one token."""
    rng = np.random.default_rng(seed)
    places = [
        Tree(preorder_parents(seed + rows, rows), tokens=rng.integers(0, 3, rows).tolist())
        if rows
        else None
        for rows in (9, 4, 0, 1)
    ]
    chosen = rng.integers(0, 3, 16).tolist()
    batch = build_batch(places, capacity=16)
    found = answers_of(best_of(chosen, "cpu"), batch, PORTABLE.acceptance_walk)
    for place, (tree, first) in enumerate(zip(places, batch.first_rows.tolist(), strict=True)):
        path = [] if tree is None else walked(tree, chosen[first:])
        assert found.path[place, : found.accepted[place]].tolist() == path


def walked(tree, chosen):
    path = [0]
    for child, parent in enumerate(tree.parents):
        if parent == path[-1] and tree.tokens[child] == chosen[parent]:
            path.append(child)
    return path


def test_the_commit_moves_the_rows_that_are_kept():
    trees = [
        Tree([-1], 9, commit=[0, 2, 5], commit_length=6),
        Tree([-1], 5, base=64),
        Tree(chain(3), 40, base=128, commit=[1], commit_length=39),
    ]
    actual = torch.randn(2, 3, KV_HEADS, 256, DIM)
    expected = actual.clone()
    for tree in trees:
        end = tree.base + tree.commit_length
        for place, offset in enumerate(tree.commit):
            expected[:, :, :, end + place] = actual[:, :, :, end + offset]
    PORTABLE.kv_commit(actual[0], actual[1], build_batch(trees))
    assert torch.equal(actual, expected)


@pytest.mark.parametrize("quantization", QUANTIZATIONS)
def test_a_product_is_added_to_the_stream(quantization):
    weight = random_weight(100, 256, quantization, torch.float32, CPU)
    found = run_skinny_matmul(PORTABLE.skinny_matmul, weight, 7, torch.float32)
    given, residual = (random_rows(7, width, torch.float32, CPU).double() for width in (256, 100))
    x = residual + given @ weight.dense().double().T
    assert_close(found["residual"], x)
    assert_close(found["normed"], x * random_rows(1, 100, torch.float32, CPU)[0])
    assert_close(found["squares"], squares_of(x.float()).T, 1e-4)


@pytest.mark.parametrize("quantization", QUANTIZATIONS)
def test_gate_and_up_are_joined(quantization):
    weight = random_weight(100, 256, quantization, torch.float32, CPU)
    y = by_formula(random_rows(7, 256, torch.float32, CPU), weight)
    found = run_gate_up(PORTABLE.gate_up, weight, 7, torch.float32)
    assert_close(found["out"], y[:, 0::2] / (1 + torch.exp(-y[:, 0::2])) * y[:, 1::2])


def test_queries_and_keys_are_turned_by_their_place():
    """As complex numbers; `run_project_qkv` draws the angles, and looks at the whole arena."""
    weight = random_weight(4 * 32, 96, "float", torch.float32, CPU)
    found = run_project_qkv(PORTABLE.project_qkv, weight, 2, torch.float32, (2, 1, 32))
    bias = random_rows(1, 128, torch.float32, CPU)[0]
    y = (by_formula(random_rows(2, 96, torch.float32, CPU), weight) + bias).view(2, 4, 32)
    angles = torch.rand(32, 16, generator=torch.Generator().manual_seed(3))[30:] * 6
    turns = torch.polar(torch.ones(2, 1, 16).double(), angles[:, None].double())
    turned = torch.view_as_real(torch.view_as_complex(y.unflatten(2, (16, 2))) * turns).flatten(2)
    assert_close(found["queries"], turned[:, :2])
    assert_close(found["keys"], turned[:, 2:3])
    assert_close(found["values"], y[:, 3:])


def test_what_the_host_knows_is_taken_from_the_batch_where_it_brings_nothing():
    tree = Tree(TREE, 3 * CHUNK + 5, base=64)
    step = build_batch([None, tree], capacity=16).rows_on_host
    (span,) = step.spans
    assert (span.place, span.base, span.length, span.num_chunks) == (1, 64, 3 * CHUNK + 5, 3)
    assert span.rows == slice(0, len(TREE))
    assert step.places[: len(TREE)].tolist() == [389 + len(tree.path(r)) - 1 for r in range(11)]
