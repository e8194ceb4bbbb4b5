"""Gate and up against their formula."""

import pytest
import torch

from kernels.gate_up import gate_up as twin
from kernels.gate_up.triton_kernel import gate_up
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
