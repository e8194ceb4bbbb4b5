"""The look-up: a row's embedding, its first norm's product and squares, whatever other rows do."""

import pytest
import torch

from kernels.embed_rows import embed_rows as twin
from kernels.embed_rows.triton_kernel import embed_rows
from kernels.residual import ResidualStream
from kernels.weight import pack
from tests.support.block_weights import random_blocks

TYPES = (torch.float32, torch.bfloat16)


def look_up(function, tokens, table, norm_weight, capacity):
    """residual, normed and squares of the tokens, then padding rows."""
    device, width = table.values.device, table.num_inputs
    padded = [*tokens, *[0] * (capacity - len(tokens))]
    ids = torch.tensor(padded, dtype=torch.int32, device=device)
    dtype = table.values.dtype if table.quantization == "float" else torch.bfloat16
    residual = torch.empty(capacity, width, device=device)
    normed = torch.empty(capacity, width, dtype=dtype, device=device)
    squares = torch.empty(-(-width // 64), capacity, device=device)
    for array in (residual, normed, squares):
        array.fill_(torch.nan)
    function(ids, table, norm_weight, ResidualStream(residual, normed, squares, 0.0))
    return residual, normed, squares


def assert_looked_up(tokens, table, norm_weight):
    """As PyTorch does it, to the bit; squares to the rounding of their sums."""
    *actual, squares = look_up(embed_rows, tokens, table, norm_weight, 8)
    *expected, sums = look_up(twin, tokens, table, norm_weight, 8)
    for one, other in zip(actual, expected, strict=True):
        assert torch.equal(one, other)
    torch.testing.assert_close(squares, sums, rtol=1e-5, atol=0)


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("width", [16, 64, 200, 896, 1100, 2048])
def test_equals_the_formula_to_the_bit(width, dtype, device):
    table = pack(torch.randn(50, width).to(device, dtype), "float")
    norm_weight = torch.randn(width, device=device)
    assert_looked_up([49, 0, 7, 7, 31], table, norm_weight)


@pytest.mark.parametrize("form", ["q8_0", "q4_k", "q6_k", "q6_k_min"])
def test_gives_the_numbers_of_a_file_to_the_bit(form, device):
    table = random_blocks(50, 1280, form, device)
    assert_looked_up([49, 0, 7, 7, 31], table, torch.randn(1280, device=device))


def test_the_squares_are_sums_of_neighbours(device):
    """2^24 + 1 + 1 + 1: neighbour by neighbour one of the ones is lost, one by one all three."""
    table = torch.zeros(1, 64, device=device)
    table[0, :4] = torch.tensor([4096.0, 1.0, 1.0, 1.0])
    given = ([0], pack(table, "float"), torch.ones(64, device=device), 1)
    _, _, squares = look_up(embed_rows, *given)
    assert squares.item() == 2**24 + 2


def test_a_row_has_the_same_bits_at_every_capacity(device):
    table = pack(torch.randn(20, 896).bfloat16().to(device), "float")
    norm_weight = torch.randn(896, device=device)
    alone = look_up(embed_rows, [13], table, norm_weight, 1)
    for capacity in (2, 16, 33):
        residual, normed, squares = look_up(embed_rows, [4, 13], table, norm_weight, capacity)
        assert torch.equal(residual[1], alone[0][0])
        assert torch.equal(normed[1], alone[1][0])
        assert torch.equal(squares[:, 1], alone[2][:, 0])
