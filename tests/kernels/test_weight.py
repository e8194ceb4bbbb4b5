"""Matrices in 8 and 4 bits."""

import pytest
import torch

from kernels.weight import INT4_GROUP, pack


def random_matrix(outputs=24, inputs=384):
    return torch.randn(outputs, inputs) * torch.rand(outputs, 1) / 10


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_float_holds_the_matrix_as_it_is(dtype):
    matrix = random_matrix().to(dtype)
    weight = pack(matrix, "float")
    assert weight.values.dtype == dtype
    assert torch.equal(weight.dense(), matrix.float())
    assert (weight.num_outputs, weight.num_inputs) == (24, 384)
    assert weight.num_bytes == matrix.nbytes


def test_fp8_errs_by_a_sixteenth_of_a_number_at_most():
    matrix = random_matrix()
    weight = pack(matrix, "fp8")
    least = matrix.abs().amax(dim=1, keepdim=True) / 448 * 2**-9  # the steps near zero
    assert ((weight.dense() - matrix).abs() <= matrix.abs() / 16 + least).all()
    assert weight.num_bytes == 24 * 384 + 24 * 4


def test_fp8_holds_what_its_numbers_can_say():
    codes = torch.randint(-8, 9, (5, 64)).float()
    codes[:, 0] = 448
    assert torch.equal(pack(codes / 16, "fp8").dense(), codes / 16)


def test_int4_is_better_than_rounding_to_the_largest_value():
    matrix = random_matrix()
    groups = matrix.view(24, -1, INT4_GROUP)
    scales = groups.abs().amax(dim=2, keepdim=True) / 7
    plain = ((groups / scales).round() * scales).view_as(matrix)
    weight = pack(matrix, "int4")
    assert (weight.dense() - matrix).square().sum() < 0.95 * (plain - matrix).square().sum()
    assert weight.num_bytes == 24 * 192 + 24 * 3 * 4
    assert (weight.num_outputs, weight.num_inputs) == (24, 384)


def test_int4_joins_inputs_that_are_64_apart():
    """Byte j of a group holds input j in its low half, input j + 64 in its high half."""
    weight = pack(random_matrix(), "int4")
    codes = weight.dense().view(24, 3, 2, 64) / weight.scales.T[:, :, None, None] + 8
    low, high = codes.round().to(torch.uint8).unbind(dim=2)
    assert torch.equal(weight.values.view(24, 3, 64), low | (high << 4))


@pytest.mark.parametrize("quantization", ["fp8", "int4"])
def test_a_matrix_of_zeros_stays_one(quantization):
    assert torch.equal(pack(torch.zeros(3, 128), quantization).dense(), torch.zeros(3, 128))


def test_int4_wants_whole_groups():
    with pytest.raises(ValueError, match="multiple of 128"):
        pack(torch.zeros(3, 100), "int4")


@pytest.mark.parametrize("quantization", ["fp8", "int4"])
def test_a_large_matrix_is_packed_piece_by_piece(quantization, monkeypatch):
    """With the same numbers, and a fraction of the memory."""
    matrix = torch.randn(300, 256)
    whole = pack(matrix, quantization)
    monkeypatch.setattr("kernels.weight._ROWS", 128)
    pieces = pack(matrix, quantization)
    assert torch.equal(pieces.dense(), whole.dense())
    assert pieces.scales.is_contiguous()
    assert pieces.values.is_contiguous()
