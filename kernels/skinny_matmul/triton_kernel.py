"""The skinny product in Triton. See the package for the contract."""

import torch
import triton
import triton.language as tl

from kernels.product.triton_kernel import (
    is_last,
    launch,
    place_of,
    product,
    rows_of,
    scaled,
    sum_adjacent,
    sum_splits,
)
from kernels.residual import ResidualStream
from kernels.scratch import Scratch
from kernels.weight import Weight


# Buckets share a binary: no number of rows may shape the code, and 1 would become a constant.
@triton.jit(do_not_specialize=["num_rows"])
def skinny_matmul_kernel(
    INPUTS, VALUES, SCALES, RESIDUAL, NORM_WEIGHT, NORMED, SQUARES, PARTIALS, ARRIVED, num_rows,
    N: tl.constexpr, K: tl.constexpr, QUANTIZATION: tl.constexpr, DEPTH: tl.constexpr,
    STEP: tl.constexpr, SPLITS: tl.constexpr, OUTPUTS: tl.constexpr, ROWS: tl.constexpr,
    STAGES: tl.constexpr, PDL: tl.constexpr,
):  # fmt: skip
    """x = residual + inputs W^T, normed = x norm_weight, squares_b = sum over block b of x^2.

    INPUTS [R, K], RESIDUAL and NORMED [R, N], NORM_WEIGHT [N], SQUARES [blocks, R], R = num_rows.
    """
    row_block, tile, split = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    acc = product(
        INPUTS, VALUES, SCALES, num_rows, tile, split, row_block,
        N, K, QUANTIZATION, DEPTH, STEP, SPLITS, OUTPUTS, ROWS, STAGES, PDL,
    )  # fmt: skip
    place = place_of(tile, row_block, N, OUTPUTS)
    if is_last(acc, PARTIALS, ARRIVED, place, split, SPLITS, OUTPUTS, ROWS):
        acc = sum_splits(acc, PARTIALS, ARRIVED, place, SPLITS, OUTPUTS, ROWS)
        n = tile * OUTPUTS + tl.arange(0, OUTPUTS)
        row = rows_of(row_block, ROWS)
        inside = (n < N)[:, None] & (row < num_rows)[None, :]
        at = row[None, :].to(tl.int64) * N + n[:, None]
        x = tl.load(RESIDUAL + at, mask=inside, other=0.0)
        x += scaled(acc, SCALES, tile, N, QUANTIZATION, OUTPUTS)
        tl.store(RESIDUAL + at, x, mask=inside)
        norm_weight = tl.load(NORM_WEIGHT + n, mask=n < N, other=0.0)
        tl.store(NORMED + at, (x * norm_weight[:, None]).to(NORMED.dtype.element_ty), mask=inside)
        BLOCKS: tl.constexpr = OUTPUTS // 64
        squares = sum_adjacent(tl.where(inside, x * x, 0.0), OUTPUTS, BLOCKS, ROWS)
        block = (tile * BLOCKS + tl.arange(0, BLOCKS))[:, None]
        inside = (block * 64 < N) & (row < num_rows)[None, :]
        tl.store(SQUARES + block * num_rows + row[None, :], squares, mask=inside)


def skinny_matmul(
    inputs: torch.Tensor,
    weight: Weight,
    norm_weight: torch.Tensor,
    stream: ResidualStream,
    scratch: Scratch,
    *,
    programmatic: bool = False,
) -> None:
    """x = residual + inputs W^T, normed = x norm_weight, squares_b = sum over block b of x^2."""
    grid, given = launch(inputs, weight, scratch, programmatic=programmatic)
    skinny_matmul_kernel[grid](
        RESIDUAL=stream.residual, NORM_WEIGHT=norm_weight,
        NORMED=stream.normed, SQUARES=stream.squares, **given,
    )  # fmt: skip
