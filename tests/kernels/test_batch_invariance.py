"""Batch invariance: a row has the same bits whatever rows ride along: `out(x[:R]) == out(x)[:R]`.

The interpreter shows that no order of ours depends on the number of rows; on a GPU the same tests
show that the tensor cores' does not either.
"""

from functools import partial

import pytest
import torch

from kernels.device_limits import LIMITS
from kernels.gate_up.triton_kernel import gate_up
from kernels.lm_head.triton_kernel import lm_head
from kernels.product.tiles import tile_for
from kernels.project_qkv.triton_kernel import project_qkv
from kernels.skinny_matmul.triton_kernel import skinny_matmul
from tests.support.assumed_limits import assumed
from tests.support.block_weights import BLOCK_FORMS
from tests.support.fixed_order import products_in_one_order
from tests.support.products import (
    LONG_ROWS,
    MOST_ROWS,
    QUANTIZATIONS,
    random_noise,
    random_weight,
    run_gate_up,
    run_lm_head,
    run_project_qkv,
    run_skinny_matmul,
)

BUCKETS = (1, 8, 32, 64)  # of the three smaller tiles; the most rows take the largest one
# Of a long piece of a prompt: no row stands where it stands in the whole, but for the first ones.
PIECES = (range(5), range(5, 133), range(133, LONG_ROWS))
RUNS = {
    "skinny_matmul": partial(run_skinny_matmul, skinny_matmul),
    "gate_up": partial(run_gate_up, gate_up),
    "project_qkv": partial(run_project_qkv, project_qkv, shape=(2, 1, 32)),
}


@pytest.fixture(autouse=True)
def _one_order():
    with products_in_one_order():
        yield


def assert_rows_keep_their_bits(written, buckets=BUCKETS):
    """`written` tells what a number of rows gives."""
    expected = written(MOST_ROWS)
    for rows in buckets:
        for name, tensor in written(rows).items():
            assert torch.equal(tensor, expected[name][:rows]), f"{name} of {rows} rows"


@pytest.mark.parametrize(
    ("operation", "quantization"),
    [
        *(("skinny_matmul", form) for form in (*QUANTIZATIONS, *BLOCK_FORMS)),
        *((one, form) for one in ("gate_up", "project_qkv") for form in ("float", "fp8")),
        ("gate_up", "int4"),
    ],
)
def test_at_any_number_of_rows_and_in_any_place_among_them(operation, quantization, device):
    weight = random_weight(128, 512, quantization, torch.bfloat16, device)
    written = partial(RUNS[operation], weight, dtype=torch.bfloat16)
    assert_rows_keep_their_bits(lambda rows: written(rows=rows))
    whole = written(rows=range(LONG_ROWS))
    for piece in PIECES:
        for name, tensor in written(rows=piece).items():
            expected = whole[name][piece.start : piece.stop]
            assert tensor.isfinite().all()
            assert torch.equal(tensor, expected), f"{name} of {piece}"


def test_on_a_device_with_tensor_memory_that_takes_rows_that_fit_there(device):
    weight = random_weight(64, 1280, "q6_k_min", torch.bfloat16, device)
    others = run_skinny_matmul(skinny_matmul, weight, 100, torch.bfloat16)
    with assumed(LIMITS[100]):
        own = run_skinny_matmul(skinny_matmul, weight, 100, torch.bfloat16)
    assert tile_for(64, 1280, 100, "q6_k_min", limits=LIMITS[100]).rows == 16
    for name, tensor in own.items():
        assert torch.equal(tensor, others[name]), name


@pytest.mark.parametrize(("inputs", "steps"), [(200, (64, 64)), (4160, (128, 64))])
def test_where_the_last_tile_of_inputs_is_not_full(inputs, steps, device):
    """Tiles of 16 and of 128 rows may step through their inputs in another way."""
    narrow, wide = (tile_for(128, inputs, rows, "float") for rows in (16, 100))
    assert (narrow.step, wide.step, wide.rows) == (*steps, 128)
    weight = random_weight(128, inputs, "float", torch.bfloat16, device)
    run = partial(run_skinny_matmul, skinny_matmul, weight, dtype=torch.bfloat16)
    assert_rows_keep_their_bits(lambda rows: run(rows=rows), buckets=(16,))


@pytest.mark.parametrize("quantization", QUANTIZATIONS)
def test_of_the_language_model_head(quantization, device):
    inputs = 384 if quantization == "int4" else 576  # which leave half of the last iteration empty
    weight = random_weight(128, inputs, quantization, torch.bfloat16, device)

    def written(rows):
        noise = random_noise(rows, device)
        return run_lm_head(lm_head, weight, rows, torch.bfloat16, noise, keep_logits=True)

    assert_rows_keep_their_bits(written)
