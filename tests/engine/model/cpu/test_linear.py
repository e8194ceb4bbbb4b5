"""Linear layers: close to the exact product, and a row's bits do not depend on the others."""

import platform

import pytest
import torch

from engine.model.cpu.linear import FloatLinear, Int8Linear, Int8PackLinear, has_fbgemm, make_linear
from engine.model.loading.packing import WEIGHT_LEVELS

SHAPES = [(128, 96), (896, 448), (320, 1216)]  # outputs, inputs

needs_fbgemm = pytest.mark.skipif(not has_fbgemm(), reason="this processor lacks FBGEMM's kernels")


def quantised(outputs: int, inputs: int) -> dict[str, torch.Tensor]:
    weight = torch.randn(outputs, inputs)
    scale = weight.abs().amax(dim=1) / WEIGHT_LEVELS
    codes = (weight / scale[:, None]).round().to(torch.int8)
    return {"x.weight": codes, "x.scale": scale, "x.bias": torch.randn(outputs)}


def exact(tensors: dict[str, torch.Tensor], x: torch.Tensor) -> torch.Tensor:
    weight = tensors["x.weight"].double() * tensors["x.scale"][:, None]
    return (x.double() @ weight.T + tensors["x.bias"]).float()


def relative_error(actual: torch.Tensor, expected: torch.Tensor) -> float:
    return float((actual - expected).norm() / expected.norm())


@needs_fbgemm
@pytest.mark.parametrize(("fine", "bar"), [(False, 2e-2), (True, 2e-4)])
@pytest.mark.parametrize("shape", SHAPES)
def test_int8_is_as_close_as_its_activations_are_fine(shape, fine, bar):
    tensors = quantised(*shape)
    x = torch.randn(9, shape[1]) * 3
    linear = make_linear("x", tensors, fine=fine)
    assert relative_error(linear(x), exact(tensors, x)) < bar


@needs_fbgemm
@pytest.mark.parametrize("fine", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_int8_gives_a_row_the_same_bits_beside_any_number_of_rows(shape, fine):
    tensors = quantised(*shape)
    linear = Int8Linear(*tensors.values(), fine=fine)
    x = torch.randn(128, shape[1])
    whole = linear(x)
    for rows in (1, 2, 3, 5, 8, 13, 32, 64, 127):
        assert torch.equal(linear(x[:rows]), whole[:rows])


@needs_fbgemm
def test_int8_keeps_a_row_of_zeros_at_the_bias():
    tensors = quantised(64, 32)
    assert torch.equal(make_linear("x", tensors)(torch.zeros(1, 32))[0], tensors["x.bias"])


@needs_fbgemm
def test_int8_does_not_saturate_where_all_products_are_largest():
    """Pairs of products are added in 16 bits: 7-bit activations leave room for the largest."""
    weight = torch.full((16, 256), WEIGHT_LEVELS, dtype=torch.int8)
    linear = Int8Linear(weight, torch.ones(16))
    torch.testing.assert_close(linear(torch.ones(1, 256)), torch.full((1, 16), 127.0 * 256))


@pytest.mark.parametrize("shape", SHAPES)
def test_processors_without_fbgemm_get_the_product_with_bfloat16_activations(shape):
    tensors = quantised(*shape)
    x = torch.randn(128, shape[1])
    linear = Int8PackLinear(*tensors.values())
    whole = linear(x)
    assert relative_error(whole, exact(tensors, x)) < 2e-2
    for rows in (1, 2, 3, 5, 8, 13, 32, 64, 127):
        assert torch.equal(linear(x[:rows]), whole[:rows])


@pytest.fixture
def asked_anew(monkeypatch):
    """A function that names the processor; what was found out about the real one is forgotten."""
    monkeypatch.setattr(type(torch.backends.quantized), "supported_engines", ["qnnpack", "fbgemm"])
    has_fbgemm.cache_clear()
    yield lambda name: monkeypatch.setattr(platform, "machine", lambda: name)
    has_fbgemm.cache_clear()


@pytest.mark.parametrize("machine", ["aarch64", "x86_64"])
def test_an_engine_that_is_named_and_cannot_pack_is_not_used(monkeypatch, asked_anew, machine):
    """The builds of 2.11 for ARM name it."""

    def refuse(*_):
        raise RuntimeError("unknown architecure")

    asked_anew(machine)
    monkeypatch.setattr(torch.ops.quantized, "linear_prepack", refuse)
    tensors, x = quantised(128, 96), torch.randn(3, 96)
    linear = make_linear("x", tensors, fine=True)
    assert isinstance(linear, Int8PackLinear)
    assert relative_error(linear(x), exact(tensors, x)) < 2e-2


@pytest.mark.parametrize("machine", ["aarch64", "arm64"])
def test_on_arm_fbgemm_is_not_even_tried(asked_anew, machine):
    """A build that packs there may still lack the products that give equal bits."""
    asked_anew(machine)
    assert not has_fbgemm()


def test_float_weights_are_multiplied_as_they_are():
    weight, bias = torch.randn(5, 7), torch.randn(5)
    x = torch.randn(3, 7)
    torch.testing.assert_close(FloatLinear(weight, bias)(x), x @ weight.T + bias)
