"""The skinny product against its formula."""

import pytest
import torch

from kernels.product.tiles import require_scratch, tile_for
from kernels.residual import ResidualStream
from kernels.skinny_matmul import skinny_matmul as twin
from kernels.skinny_matmul.triton_kernel import skinny_matmul
from kernels.weight import Quantization
from tests.support.block_weights import BLOCK_FORMS
from tests.support.products import (
    DTYPES,
    formula,
    random_rows,
    random_weight,
    run_skinny_matmul,
    scratch_for,
)

BFLOAT16_ERROR = {"residual": 3e-5, "normed": 1e-2, "squares": 1e-4}
FLOAT32_ERROR = {"residual": 3e-5, "normed": 3e-5, "squares": 1e-4}
ODD = ((1, 64, 32), (3, 100, 96), (16, 192, 1024), (17, 100, 300), (40, 64, 256), (128, 100, 600))
IN_GROUPS = ((1, 64, 128), (3, 100, 256), (17, 192, 1024), (128, 64, 640))
IN_BLOCKS = ((3, 100, 512), (17, 64, 1280))
SHAPES: dict[Quantization, tuple[tuple[int, int, int], ...]] = {
    "float": ODD,
    "fp8": ODD,
    "int4": IN_GROUPS,
    **dict.fromkeys(BLOCK_FORMS, IN_BLOCKS),
    "q8_0": (*IN_BLOCKS, (3, 64, 576)),  # half a tile of inputs
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("rows", "outputs", "inputs", "quantization"),
    [(*shape, form) for form, shapes in SHAPES.items() for shape in shapes],
)
def test_equals_the_formula(rows, outputs, inputs, quantization, dtype, device):
    weight = random_weight(outputs, inputs, quantization, dtype, device)
    expected = run_skinny_matmul(formula(twin), weight, rows, dtype)
    actual = run_skinny_matmul(skinny_matmul, weight, rows, dtype)
    errors = BFLOAT16_ERROR if dtype == torch.bfloat16 else FLOAT32_ERROR
    for name, error in errors.items():
        torch.testing.assert_close(actual[name], expected[name], rtol=error, atol=error)


def test_may_run_again_in_the_same_scratch_memory(device):
    """The counters are left at zero, whatever the sums of the run before."""
    weight = random_weight(64, 1024, "float", torch.bfloat16, device)
    scratch = scratch_for(weight, 3)
    results = []
    for _ in range(2):
        inputs = random_rows(3, 1024, torch.bfloat16, device)
        residual = torch.zeros(3, 64, device=device)
        normed, squares = torch.zeros_like(residual), torch.zeros(1, 3, device=device)
        stream = ResidualStream(residual, normed, squares, 0.0)
        skinny_matmul(inputs, weight, residual[0], stream, scratch)
        results.append(residual)
    assert torch.equal(*results)


def test_wants_enough_scratch_memory(device):
    weight = random_weight(64, 1024, "float", torch.bfloat16, device)
    with pytest.raises(ValueError, match="a product wants"):
        require_scratch(scratch_for(weight, 16), weight, 17)


def test_a_large_product_is_not_split():
    assert tile_for(37888, 3584, 1, "float").splits == 1
    assert tile_for(3584, 18944, 1, "float").splits == 4
