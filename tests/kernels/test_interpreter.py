"""Triton's interpreter computes bfloat16 as a GPU does, and loops as far as memory says."""

import torch
import triton
import triton.language as tl


@triton.jit
def _binary_kernel(left, right, total, less, size: tl.constexpr):
    """total = left + right, less = left < right."""
    i = tl.arange(0, size)
    a, b = tl.load(left + i), tl.load(right + i)
    tl.store(total + i, a + b)
    tl.store(less + i, a < b)


@triton.jit
def _cast_kernel(numbers, out, back, size: tl.constexpr):
    """out = numbers in bfloat16, back = that in float32."""
    i = tl.arange(0, size)
    cast = tl.load(numbers + i).to(tl.bfloat16)
    tl.store(out + i, cast)
    tl.store(back + i, cast.to(tl.float32))


@triton.jit
def _dot_kernel(left, right, out, count, size: tl.constexpr):
    """out = count times left right."""
    i, j = tl.arange(0, size)[:, None], tl.arange(0, size)[None, :]
    a, b = tl.load(left + i * size + j), tl.load(right + i * size + j)
    acc = tl.zeros([size, size], tl.float32)
    for _ in tl.range(0, tl.load(count)):
        acc = tl.dot(a, b, acc, input_precision="ieee")
    tl.store(out + i * size + j, acc)


def test_sums_and_comparisons_of_bfloat16_are_exact(device):
    a, b = torch.randn(2, 4096, device=device).bfloat16()
    total, less = torch.empty_like(a), torch.empty(4096, dtype=torch.bool, device=device)
    _binary_kernel[(1,)](a, b, total, less, size=4096)
    assert torch.equal(total, a + b)
    assert torch.equal(less, a < b)


def test_float32_becomes_the_nearest_bfloat16_and_of_two_the_even(device):
    odd = torch.tensor([0.0, -0.0, torch.inf, -torch.inf, 3.4e38, torch.nan])
    halfway = 1 + torch.arange(18) / 256  # every other one lies between two
    x = torch.cat([torch.randn(1000), odd, halfway]).to(device)
    out, back = torch.empty(1024, dtype=torch.bfloat16, device=device), torch.empty_like(x)
    _cast_kernel[(1,)](x, out, back, size=1024)
    torch.testing.assert_close(out, x.bfloat16(), rtol=0, atol=0, equal_nan=True)
    torch.testing.assert_close(back, x.bfloat16().float(), rtol=0, atol=0, equal_nan=True)


def test_products_of_bfloat16_add_up_as_often_as_memory_says(device):
    a, b = torch.randn(2, 32, 32, device=device).bfloat16()
    for count in (0, 1, 3):
        out = torch.empty(32, 32, device=device)
        times = torch.tensor([count], dtype=torch.int32, device=device)
        _dot_kernel[(1,)](a, b, out, times, size=32)
        torch.testing.assert_close(out, count * (a.float() @ b.float()), rtol=1e-5, atol=1e-4)
