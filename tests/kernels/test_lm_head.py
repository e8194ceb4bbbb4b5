"""The language-model head against its formula, and its noise."""

import pytest
import torch

from kernels.lm_head import gumbel
from kernels.lm_head import lm_head as twin
from kernels.lm_head.triton_kernel import lm_head
from kernels.weight import Weight
from tests.support.products import DTYPES, formula, random_noise, random_weight, run_lm_head

SHAPES = [(1, 64, 32), (3, 100, 96), (17, 192, 256), (40, 129, 128), (128, 100, 128)]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("sampled", [False, True], ids=["greedy", "sampled"])
@pytest.mark.parametrize(
    ("rows", "outputs", "inputs", "quantization"),
    [(*shape, "float") for shape in SHAPES] + [(17, 100, 256, form) for form in ("fp8", "int4")],
)
def test_equals_the_formula(rows, outputs, inputs, quantization, sampled, dtype, device):
    weight = random_weight(outputs, inputs, quantization, dtype, device)
    given = (weight, rows, dtype, random_noise(rows, device) if sampled else None)
    expected = run_lm_head(formula(twin), *given, keep_logits=True)
    actual = run_lm_head(lm_head, *given, keep_logits=True)
    assert torch.equal(actual.pop("ids"), expected.pop("ids"))
    for name, tensor in expected.items():
        torch.testing.assert_close(actual[name], tensor, rtol=3e-5, atol=3e-5)


@pytest.mark.parametrize("operation", [twin, lm_head], ids=["pytorch", "kernel"])
def test_the_lowest_id_wins_a_tie(operation, device):
    row = torch.ones(1, 32, device=device, dtype=torch.bfloat16)
    weight = Weight("float", row.expand(130, 32).contiguous(), None)
    written = run_lm_head(operation, weight, 3, torch.bfloat16)
    assert written["ids"].tolist() == [[0, 64, 128]] * 3
    assert written["sums"].tolist() == [[64, 64, 2]] * 3


def test_a_greedy_row_of_a_sampled_step_has_the_bits_of_a_greedy_step(device):
    weight = random_weight(100, 128, "float", torch.bfloat16, device)
    sampled = run_lm_head(lm_head, weight, 4, torch.bfloat16, random_noise(4, device))
    greedy = run_lm_head(lm_head, weight, 4, torch.bfloat16)
    for name, tensor in greedy.items():
        assert torch.equal(sampled[name][[0, 3]], tensor[[0, 3]])


def test_noise_is_finite_and_follows_gumbels_distribution():
    noise = gumbel(torch.randint(-(2**31), 2**31, (8, 2)), 20_000).double()
    assert noise.isfinite().all()
    assert noise.mean().item() == pytest.approx(0.5772, abs=0.015)
    assert noise.std().item() == pytest.approx(1.2825, abs=0.015)


def test_noise_is_that_of_the_cpu():
    """To the rounding of float32, id by id: a text sampled on either has the same draws."""
    from engine.model.sampling import _noise

    words = torch.randint(0, 2**32, (3, 2))
    ours = gumbel(words.to(torch.int32), 50)
    for row, (low, high) in enumerate(words.tolist()):
        theirs = [_noise(low | high << 32, token) for token in range(50)]
        assert ours[row].tolist() == pytest.approx(theirs, abs=1e-3)
