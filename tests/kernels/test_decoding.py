"""Codes of quantized weights decode exactly: every code, in every place of a word."""

import pytest
import torch
import triton
import triton.language as tl

from kernels.device_limits import LIMITS
from kernels.product.triton_decoding import decoded_fp8, decoded_int4
from kernels.product.triton_kernel import readable_values
from kernels.skinny_matmul.triton_kernel import skinny_matmul
from tests.support.assumed_limits import assumed
from tests.support.products import random_weight, run_skinny_matmul


@triton.jit
def fp8_kernel(CODES, OUT):
    at = tl.arange(0, 1024)
    tl.store(OUT + at, decoded_fp8(tl.load(CODES + at)))


@triton.jit
def int4_kernel(CODES, LOW, HIGH):
    at = tl.arange(0, 1024)
    low, high = decoded_int4(tl.load(CODES + at))
    tl.store(LOW + at, low)
    tl.store(HIGH + at, high)


@pytest.fixture
def codes(device):
    """Each byte four times, in each place of a word once."""
    every = torch.arange(256, dtype=torch.uint8)
    return torch.stack([every.roll(shift) for shift in range(4)]).flatten().to(device)


def test_fp8_by_bits_is_what_the_type_says(codes, device):
    out = torch.empty(1024, dtype=torch.bfloat16, device=device)
    fp8_kernel[(1,)](codes, out)
    expected = codes.view(torch.float8_e4m3fn).to(torch.bfloat16)
    finite = expected.isfinite()  # of 256 codes two are NaN, which no weight holds
    assert (~finite).sum() == 8
    assert torch.equal(out[finite].view(torch.int16), expected[finite].view(torch.int16))


def test_int4_is_the_code_less_eight(codes, device):
    low, high = (torch.empty(1024, dtype=torch.bfloat16, device=device) for _ in range(2))
    int4_kernel[(1,)](codes, low, high)
    assert torch.equal(low, ((codes & 15).int() - 8).to(torch.bfloat16))
    assert torch.equal(high, ((codes >> 4).int() - 8).to(torch.bfloat16))


def test_a_product_has_the_same_bits_however_fp8_is_decoded(device):
    weight = random_weight(64, 256, "fp8", torch.bfloat16, device)
    ours = run_skinny_matmul(skinny_matmul, weight, 3, torch.bfloat16)
    with assumed(LIMITS[86]):
        assert readable_values(weight).dtype == torch.uint8
        by_bits = run_skinny_matmul(skinny_matmul, weight, 3, torch.bfloat16)
    assert all(torch.equal(by_bits[name], ours[name]) for name in ours)
