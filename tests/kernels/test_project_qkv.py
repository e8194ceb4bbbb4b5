"""The projection against its formula, and where it writes."""

import pytest
import torch

from kernels.project_qkv import project_qkv as twin
from kernels.project_qkv.triton_kernel import project_qkv
from tests.support.products import DTYPES, formula, random_weight, run_project_qkv

ERROR = {torch.bfloat16: 2e-2, torch.float32: 5e-5}


def assert_equals_the_formula(rows, shape, inputs, quantization, dtype, device):
    heads, kv_heads, dim = shape
    weight = random_weight((heads + 2 * kv_heads) * dim, inputs, quantization, dtype, device)
    expected = run_project_qkv(formula(twin), weight, rows, dtype, shape)
    actual = run_project_qkv(project_qkv, weight, rows, dtype, shape)
    assert actual.keys() == expected.keys()
    for name, tensor in expected.items():
        error = ERROR[dtype]
        torch.testing.assert_close(actual[name], tensor, rtol=error, atol=error)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "shape", [(2, 1, 64), (1, 1, 128), (3, 1, 32), (4, 2, 16), (2, 2, 8)], ids=str
)
@pytest.mark.parametrize("rows", [1, 17])
def test_equals_the_formula_for_heads_of_any_size(rows, shape, dtype, device):
    assert_equals_the_formula(rows, shape, 300, "float", dtype, device)


@pytest.mark.parametrize("quantization", ["float", "fp8", "int4"])
@pytest.mark.parametrize("rows", [3, 40])
def test_equals_the_formula_in_several_splits(rows, quantization, device):
    assert_equals_the_formula(rows, (2, 1, 64), 512, quantization, torch.bfloat16, device)


def test_rows_that_hold_nothing_write_no_keys(device):
    """`run_project_qkv` leaves the rows from 100 on empty, and looks at the whole arena."""
    assert_equals_the_formula(128, (1, 1, 64), 128, "float", torch.bfloat16, device)
