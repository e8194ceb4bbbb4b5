"""The operations in PyTorch against their formulas in float64, at odd shapes, in memory full of NaN."""

import pytest
import torch

from kernels.lm_head import SamplingNoise, gumbel
from kernels.operations import PORTABLE
from kernels.step_rows import CHUNK
from tests.support.batches import Tree, build_batch, preorder_parents
from tests.support.products import (
    EPS,
    QUANTIZATIONS,
    random_noise,
    random_rows,
    random_weight,
    run_gate_up,
    run_lm_head,
    run_project_qkv,
    run_skinny_matmul,
    squares_of,
)

CPU = torch.device("cpu")
TREE = preorder_parents(4, 11)


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(1)


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


@pytest.mark.parametrize("quantization", QUANTIZATIONS)
def test_a_product_is_added_to_the_stream(quantization):
    """In the type of the inputs, whatever the weights are held in."""
    weight = random_weight(100, 256, quantization, torch.bfloat16, CPU)
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
