"""Gate and up against their formula, and what they cost on an H100."""

import pytest
import torch

from kernels.gate_up.pytorch import gate_up as twin
from kernels.gate_up.triton_kernel import gate_up
from tests.support.product_costs import assert_fits, compile_product
from tests.support.products import DTYPES, formula, random_weight, run_gate_up

ERROR = {torch.bfloat16: 1e-2, torch.float32: 3e-5}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("quantization", ["float", "fp8", "int4"])
@pytest.mark.parametrize(
    ("rows", "outputs", "inputs"), [(1, 64, 128), (3, 100, 384), (17, 192, 128), (128, 64, 512)]
)
def test_equals_the_formula(rows, outputs, inputs, quantization, dtype, device):
    weight = random_weight(outputs, inputs, quantization, dtype, device)
    expected = run_gate_up(formula(twin), weight, rows, dtype)["out"]
    actual = run_gate_up(gate_up, weight, rows, dtype)["out"]
    torch.testing.assert_close(actual, expected, rtol=ERROR[dtype], atol=ERROR[dtype])


TYPES = {
    "SQUARES": "*fp32",
    "OUT": "*bf16",
    "PARTIALS": "*fp32",
    "ARRIVED": "*i32",
    "eps": "fp32",
}


@pytest.mark.parametrize(
    ("rows", "quantization"),
    [(16, "float"), (64, "float"), (64, "fp8"), (16, "int4")],
)
def test_fits_an_h100(hopper, rows, quantization):
    kernel = "kernels.gate_up.triton_kernel:gate_up_kernel"
    compiled = compile_product(
        hopper, kernel, (37888, 3584), rows, TYPES, {}, quantization=quantization, reads_code=True
    )
    assert_fits(compiled, programs=2 if rows == 16 else 1)
