"""Gate and up in Triton. See the package for the contract."""

import torch
import triton
import triton.language as tl

from kernels.product.triton_kernel import (
    is_last,
    launch,
    place_of,
    product,
    row_factors,
    rows_of,
    scaled,
    split_pairs,
    sum_splits,
)
from kernels.residual import ResidualStream
from kernels.scratch import Scratch
from kernels.weight import Weight


# Buckets share a binary: no number of rows may shape the code, and 1 would become a constant.
@triton.jit(do_not_specialize=["num_rows"])
def gate_up_kernel(
    INPUTS, VALUES, SCALES, SQUARES, OUT, PARTIALS, ARRIVED, eps, num_rows,
    N: tl.constexpr, K: tl.constexpr, QUANTIZATION: tl.constexpr, DEPTH: tl.constexpr,
    STEP: tl.constexpr, SPLITS: tl.constexpr, OUTPUTS: tl.constexpr, ROWS: tl.constexpr,
    STAGES: tl.constexpr, PDL: tl.constexpr,
):  # fmt: skip
    """y = (x W^T) / sqrt(sum_b squares_b / K + eps), out_i = silu(y_2i) y_2i+1.

    INPUTS [R, K], SQUARES [blocks, R], OUT [R, N / 2], R = num_rows.
    """
    row_block, tile, split = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    acc = product(
        INPUTS, VALUES, SCALES, num_rows, tile, split, row_block,
        N, K, QUANTIZATION, DEPTH, STEP, SPLITS, OUTPUTS, ROWS, STAGES, PDL,
    )  # fmt: skip
    place = place_of(tile, row_block, N, OUTPUTS)
    if is_last(acc, PARTIALS, ARRIVED, place, split, SPLITS, OUTPUTS, ROWS):
        acc = sum_splits(acc, PARTIALS, ARRIVED, place, SPLITS, OUTPUTS, ROWS)
        factors = row_factors(SQUARES, eps, num_rows, row_block, K, ROWS)
        y = scaled(acc, SCALES, tile, N, QUANTIZATION, OUTPUTS) * factors[None, :]
        gate, up = split_pairs(y, OUTPUTS, ROWS)
        out = gate / (1.0 + tl.exp(-gate)) * up
        n = tile * (OUTPUTS // 2) + tl.arange(0, OUTPUTS // 2)
        row = rows_of(row_block, ROWS)
        inside = (n < N // 2)[:, None] & (row < num_rows)[None, :]
        at = row[None, :].to(tl.int64) * (N // 2) + n[:, None]
        tl.store(OUT + at, out.to(OUT.dtype.element_ty), mask=inside)


def gate_up(
    stream: ResidualStream,
    weight: Weight,
    out: torch.Tensor,
    scratch: Scratch,
    *,
    programmatic: bool = False,
) -> None:
    """y = (normed W^T) / sqrt(sum_b squares_b / H + eps), out_i = silu(y_2i) y_2i+1."""
    grid, given = launch(stream.normed, weight, scratch, programmatic=programmatic)
    gate_up_kernel[grid](SQUARES=stream.squares, OUT=out, eps=stream.eps, **given)
