"""Products and look-ups with the blocks of model files against the same blocks in float32."""

import pytest
import torch

from kernels.device_limits import LIMITS, assumed
from kernels.product.tiles import tile_for
from kernels.skinny_matmul.pytorch import skinny_matmul as twin
from kernels.skinny_matmul.triton_kernel import skinny_matmul
from tests.kernels.test_embed_rows import assert_looked_up
from tests.support.block_weights import BLOCK_FORMS, random_blocks
from tests.support.fixed_order import products_in_one_order
from tests.support.products import DTYPES, formula, run_skinny_matmul


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("form", "rows", "outputs", "inputs"),
    [
        *((form, 3, 100, 512) for form in BLOCK_FORMS),
        *((form, 17, 64, 1280) for form in BLOCK_FORMS),
        ("q8_0", 3, 64, 576),  # half a tile of inputs
    ],
)
def test_a_product_equals_the_formula(form, rows, outputs, inputs, dtype, device):
    """Within the rounding of sums: codes and scales are the same numbers in both."""
    weight = random_blocks(outputs, inputs, form, device)
    expected = run_skinny_matmul(formula(twin), weight, rows, dtype)
    actual = run_skinny_matmul(skinny_matmul, weight, rows, dtype)
    torch.testing.assert_close(actual["residual"], expected["residual"], rtol=3e-5, atol=3e-5)


@pytest.mark.parametrize("form", BLOCK_FORMS)
def test_a_row_has_the_same_bits_at_any_number_of_rows(form, device):
    weight = random_blocks(64, 512, form, device)
    with products_in_one_order():
        most = run_skinny_matmul(skinny_matmul, weight, 128, torch.bfloat16)
        for rows in (1, 16, 40):
            few = run_skinny_matmul(skinny_matmul, weight, rows, torch.bfloat16)
            for name, tensor in few.items():
                assert torch.equal(tensor, most[name][:rows]), f"{name} of {rows} rows"


def test_a_device_with_tensor_memory_takes_rows_that_fit_there_with_the_same_bits(device):
    weight = random_blocks(64, 1280, "q6_k_min", device)
    with products_in_one_order():
        others = run_skinny_matmul(skinny_matmul, weight, 100, torch.bfloat16)
        with assumed(LIMITS[100]):
            own = run_skinny_matmul(skinny_matmul, weight, 100, torch.bfloat16)
    assert tile_for(64, 1280, 100, "q6_k_min", limits=LIMITS[100]).rows == 16
    for name, tensor in own.items():
        assert torch.equal(tensor, others[name]), name


@pytest.mark.parametrize("form", ["q8_0", "q4_k", "q6_k", "q6_k_min"])
def test_a_look_up_gives_the_file_s_numbers_to_the_bit(form, device):
    table = random_blocks(50, 1280, form, device)
    norm_weight = torch.randn(1280, device=device)
    assert_looked_up([49, 0, 7, 7, 31], table, norm_weight)
