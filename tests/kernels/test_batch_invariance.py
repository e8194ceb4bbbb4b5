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
)

BUCKETS = (1, 4, 8, 16, 32, 64)
# Of a long piece of a prompt: no row stands where it stands in the whole, but for the first ones.
PIECES = (range(5), range(5, 133), range(133, LONG_ROWS))
RUNS = {
    "skinny_matmul": partial(run_skinny_matmul, skinny_matmul),
    "gate_up": partial(run_gate_up, gate_up),
}


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
@pytest.mark.parametrize("operation", RUNS)
def test_at_any_number_of_rows_and_in_any_place_among_them(operation, quantization, device):
    weight = random_weight(128, 512, quantization, torch.bfloat16, device)
    written = partial(RUNS[operation], weight, dtype=torch.bfloat16)
    assert_rows_keep_their_bits(lambda rows: written(rows=rows))
    whole = written(rows=LONG_ROWS)
    for piece in PIECES:
        for name, tensor in written(rows=piece).items():
            expected = whole[name][piece.start : piece.stop]
            assert torch.equal(tensor, expected), f"{name} of {piece}"


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
