"""The look-up on a GPU. See the package for the contract.

A block's squares are added as a tree of neighbours, and nothing is fused: all kernels sum alike.
"""

import torch
import triton
import triton.language as tl

from kernels.blocks.triton_kernel import block_row
from kernels.device_limits import early_launch
from kernels.residual import ResidualStream
from kernels.weight import Weight

_BLOCKS = 16  # blocks of 64 columns that a program takes


@triton.jit
def _neighbour_sums(x, BLOCKS: tl.constexpr):
    """[BLOCKS * 64] -> [BLOCKS]: six times, s_i = x_2i + x_2i+1."""
    for level in tl.static_range(6):
        x = tl.sum(tl.reshape(x, [BLOCKS * (32 >> level), 2]), 1)
    return x


@triton.jit(do_not_specialize=["capacity", "num_tokens"])
def embed_rows_kernel(
    TOKENS, TABLE, SCALES, NORM_WEIGHT, RESIDUAL, NORMED, SQUARES, capacity, num_tokens,
    H: tl.constexpr, QUANTIZATION: tl.constexpr, BLOCKS: tl.constexpr, PDL: tl.constexpr,
):  # fmt: skip
    """x = TABLE[token];  RESIDUAL = x;  NORMED = x NORM_WEIGHT;  SQUARES_b = sum of x^2 over block b.

    One row and BLOCKS blocks of 64 columns. TABLE and SCALES of a `Weight` [num_tokens, H], NORM_WEIGHT
    [H], RESIDUAL and NORMED [capacity, H], SQUARES [ceil(H / 64), capacity].
    """
    row, chunk = tl.program_id(0), tl.program_id(1)
    column = chunk * (BLOCKS * 64) + tl.arange(0, BLOCKS * 64)
    there = column < H
    norm_weight = tl.load(NORM_WEIGHT + column, mask=there, other=0.0)
    if PDL:
        tl.extra.cuda.gdc_wait()
    token = tl.load(TOKENS + row).to(tl.int64)
    if QUANTIZATION == "float":
        x = tl.load(TABLE + token * H + column, mask=there, other=0.0).to(tl.float32)
    else:
        x = block_row(TABLE, SCALES, token, tl.minimum(column, H - 1), num_tokens, H, QUANTIZATION)
        x = tl.where(there, x, 0.0)
    at = row.to(tl.int64) * H + column
    tl.store(RESIDUAL + at, x, mask=there)
    tl.store(NORMED + at, (x * norm_weight).to(NORMED.dtype.element_ty), mask=there)
    block = chunk * BLOCKS + tl.arange(0, BLOCKS)
    squares_at = SQUARES + block.to(tl.int64) * capacity + row
    tl.store(squares_at, _neighbour_sums(x * x, BLOCKS), mask=block * 64 < H)
    if PDL:
        tl.extra.cuda.gdc_launch_dependents()


def embed_rows(
    tokens: torch.Tensor,
    table: Weight,
    norm_weight: torch.Tensor,
    stream: ResidualStream,
    *,
    programmatic: bool = False,
) -> None:
    """One launch; `programmatic` lets the next kernel start while this one ends."""
    rows, width = stream.residual.shape
    embed_rows_kernel[(rows, triton.cdiv(width, _BLOCKS * 64))](
        tokens, table.values, table.scales, norm_weight,
        stream.residual, stream.normed, stream.squares, rows, table.num_outputs,
        H=width, QUANTIZATION=table.quantization, BLOCKS=_BLOCKS, PDL=programmatic,
        num_warps=4, enable_fp_fusion=False, **early_launch(programmatic=programmatic),
    )  # fmt: skip
