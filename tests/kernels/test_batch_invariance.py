"""Batch invariance: a row has the same bits whatever rows ride along: `out(x[:R]) == out(x)[:R]`.

The interpreter shows that no order of ours depends on the number of rows; on a GPU the same tests
show that the tensor cores' does not either.
"""

from functools import partial

import pytest
import torch

from kernels.gate_up.triton_kernel import gate_up
from kernels.lm_head.triton_kernel import lm_head
from kernels.project_qkv.triton_kernel import project_qkv
from kernels.residual import ResidualStream
from kernels.skinny_matmul.triton_kernel import skinny_matmul
from kernels.weight import QUANTIZATIONS
from tests.support.fixed_order import products_in_one_order
from tests.support.products import (
    LONG_ROWS,
    MOST_ROWS,
    random_noise,
    random_rows,
    random_weight,
    run_gate_up,
    run_lm_head,
    run_pieces_of_projection,
    run_project_qkv,
    run_skinny_matmul,
    scratch_for,
    stream_of,
    unwritten,
)

BUCKETS = (1, 4, 8, 16, 32, 64)


@pytest.fixture(autouse=True)
def _one_order():
    with products_in_one_order():
        yield


def assert_rows_keep_their_bits(written):
    """`written` tells what a number of rows gives."""
    expected = written(MOST_ROWS)
    for rows in BUCKETS:
        for name, tensor in written(rows).items():
            assert torch.equal(tensor, expected[name][:rows]), f"{name} of {rows} rows"


@pytest.mark.parametrize("quantization", QUANTIZATIONS)
def test_of_the_skinny_product(quantization, device):
    weight = random_weight(128, 512, quantization, torch.bfloat16, device)
    assert_rows_keep_their_bits(
        partial(run_skinny_matmul, skinny_matmul, weight, dtype=torch.bfloat16)
    )


@pytest.mark.parametrize("quantization", QUANTIZATIONS)
def test_in_any_place_among_the_rows(quantization, device):
    weight = random_weight(128, 512, quantization, torch.bfloat16, device)
    inputs = random_rows(40, 512, torch.bfloat16, device)
    norm_weight = torch.ones(128, device=device)

    def written(rows):
        residual = torch.zeros(len(rows), 128, device=device)
        normed, squares = torch.zeros_like(residual), torch.zeros(2, len(rows), device=device)
        stream = ResidualStream(residual, normed, squares, 0.0)
        skinny_matmul(rows, weight, norm_weight, stream, scratch_for(weight, len(rows)))
        return torch.cat([residual, squares.T], dim=1)

    assert torch.equal(written(inputs.flip(0)).flip(0), written(inputs))


def assert_pieces_have_their_bits(written, inputs):
    """`written` tells what rows give: a long piece what those of 128 rows give one by one."""
    pieces = [written(piece.contiguous()) for piece in inputs.split(MOST_ROWS)]
    assert len(pieces) == 3
    assert torch.equal(written(inputs), torch.cat(pieces))


@pytest.mark.parametrize("quantization", QUANTIZATIONS)
def test_of_the_skinny_product_in_a_long_piece(quantization, device):
    weight = random_weight(128, 512, quantization, torch.bfloat16, device)
    norm_weight = torch.ones(128, device=device)

    def written(rows):
        residual = torch.zeros(len(rows), 128, device=device)
        squares = unwritten(2, len(rows), like=residual)
        stream = ResidualStream(residual, unwritten(*residual.shape, like=rows), squares, 0.0)
        scratch = scratch_for(weight, len(rows))
        skinny_matmul(rows, weight, norm_weight, stream, scratch)
        assert not scratch.arrived.any()
        return torch.cat([stream.residual, stream.normed, stream.squares.T], dim=1)

    inputs = random_rows(LONG_ROWS, 512, torch.bfloat16, device)
    assert_pieces_have_their_bits(written, inputs)


@pytest.mark.parametrize("quantization", QUANTIZATIONS)
def test_of_gate_and_up_in_a_long_piece(quantization, device):
    weight = random_weight(128, 512, quantization, torch.bfloat16, device)

    def written(rows):
        out, scratch = unwritten(len(rows), 64, like=rows), scratch_for(weight, len(rows))
        gate_up(stream_of(rows), weight, out, scratch)
        assert not scratch.arrived.any()
        return out

    inputs = random_rows(LONG_ROWS, 512, torch.bfloat16, device)
    assert_pieces_have_their_bits(written, inputs)


@pytest.mark.parametrize("quantization", QUANTIZATIONS)
def test_of_the_projection_in_a_long_piece(quantization, device):
    weight = random_weight(128, 512, quantization, torch.bfloat16, device)
    inputs = random_rows(LONG_ROWS, 512, torch.bfloat16, device)

    def written(pieces):
        return run_pieces_of_projection(project_qkv, weight, pieces, shape=(2, 1, 32))

    whole, pieces = written([inputs]), written(inputs.split(MOST_ROWS))
    for name, tensor in whole.items():
        assert tensor.isfinite().all()
        assert torch.equal(tensor, pieces[name]), name


@pytest.mark.parametrize("quantization", QUANTIZATIONS)
def test_of_gate_and_up(quantization, device):
    weight = random_weight(128, 256, quantization, torch.bfloat16, device)
    assert_rows_keep_their_bits(partial(run_gate_up, gate_up, weight, dtype=torch.bfloat16))


@pytest.mark.parametrize("quantization", QUANTIZATIONS)
def test_of_the_projection(quantization, device):
    weight = random_weight(128, 512, quantization, torch.bfloat16, device)
    assert_rows_keep_their_bits(
        partial(run_project_qkv, project_qkv, weight, dtype=torch.bfloat16, shape=(2, 1, 32))
    )


@pytest.mark.parametrize("quantization", QUANTIZATIONS)
def test_of_the_language_model_head(quantization, device):
    weight = random_weight(128, 256, quantization, torch.bfloat16, device)

    def written(rows):
        noise = random_noise(rows, device)
        return run_lm_head(lm_head, weight, rows, torch.bfloat16, noise, keep_logits=True)

    assert_rows_keep_their_bits(written)
