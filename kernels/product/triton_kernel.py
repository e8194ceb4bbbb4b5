"""The main loop of the skinny products in Triton. See the package."""

from typing import Any

import torch
import triton
import triton.language as tl

from kernels.blocks.triton_kernel import block_product
from kernels.device_limits import early_launch, limits_of
from kernels.product.tiles import num_blocks, require_scratch, tile_for
from kernels.product.triton_decoding import decoded_fp8, decoded_int4
from kernels.scratch import Scratch
from kernels.weight import Weight

_LINE_BYTES: tl.constexpr = tl.constexpr(128)  # of the L2 cache
_LINES: tl.constexpr = tl.constexpr(8)  # of each output, asked for ahead of what is waited for


def launch(
    inputs: torch.Tensor, weight: Weight, scratch: Scratch | None, *, programmatic: bool
) -> tuple[tuple[int, int, int], dict[str, Any]]:
    """Return the grid of a product of `inputs` [R, K], and the arguments that all products share.

    Programs of one tile with different rows follow each other, so the cache holds its weights.
    Without a scratch nothing is split. Raises ValueError if the sums of the splits do not fit.

    The compiler may not fuse multiply and add: its choice could depend on the row tile.
    """
    rows, num_outputs, num_inputs = len(inputs), weight.num_outputs, weight.num_inputs
    given: dict[str, Any] = {}
    if scratch is not None:
        require_scratch(scratch, weight, rows)
        given = {"PARTIALS": scratch.partials, "ARRIVED": scratch.arrived}
    limits = limits_of(weight.values.device)
    tile = tile_for(
        num_outputs, num_inputs, rows, weight.quantization, whole=scratch is None, limits=limits
    )
    given |= {
        "INPUTS": inputs, "VALUES": readable_values(weight), "SCALES": weight.scales,
        "num_rows": rows, "N": num_outputs, "K": num_inputs,
        "QUANTIZATION": weight.quantization, "DEPTH": tile.depth, "STEP": tile.step,
        "SPLITS": tile.splits, "OUTPUTS": tile.outputs, "ROWS": tile.rows,
        "STAGES": tile.num_stages, "PDL": programmatic, "num_warps": tile.num_warps,
        "num_stages": tile.num_stages, "enable_fp_fusion": False,
        **early_launch(programmatic=programmatic),
    }  # fmt: skip
    grid = (num_blocks(rows, tile.rows), num_blocks(num_outputs, tile.outputs), tile.splits)
    return grid, given


def readable_values(weight: Weight) -> torch.Tensor:
    """The values of a weight as the device's kernels take them: codes of fp8 perhaps as bytes."""
    if weight.quantization == "fp8" and not limits_of(weight.values.device).converts_fp8:
        return weight.values.view(torch.uint8)
    return weight.values


@triton.jit
def product(
    INPUTS, VALUES, SCALES, num_rows, tile, split, row_block,
    N: tl.constexpr, K: tl.constexpr, QUANTIZATION: tl.constexpr, DEPTH: tl.constexpr,
    STEP: tl.constexpr, SPLITS: tl.constexpr, OUTPUTS: tl.constexpr, ROWS: tl.constexpr,
    STAGES: tl.constexpr, PDL: tl.constexpr,
):  # fmt: skip
    """acc = W x^T over the inputs of a split, float32 [OUTPUTS, ROWS], of a tile and a row block.

    INPUTS [num_rows, K]; VALUES and SCALES of a `Weight`. Outputs beyond N repeat N - 1, rows beyond
    num_rows are zeros. `scaled` applies the scales of fp8. STAGES iterations are under way.
    """
    BLOCKS: tl.constexpr = (K + DEPTH - 1) // DEPTH
    IS_WHOLE: tl.constexpr = QUANTIZATION == "float" or QUANTIZATION == "fp8"
    first, end = split * BLOCKS // SPLITS, (split + 1) * BLOCKS // SPLITS
    output = tl.minimum(tile * OUTPUTS + tl.arange(0, OUTPUTS), N - 1).to(tl.int64)
    row = rows_of(row_block, ROWS)
    there = (row < num_rows)[None, :]
    weight_rows = VALUES + output[:, None] * row_length(K, QUANTIZATION)
    x = INPUTS + row[None, :].to(tl.int64) * K
    if PDL:
        _prefetch(VALUES, tile, split, N, K, QUANTIZATION, DEPTH, SPLITS, OUTPUTS)
        tl.extra.cuda.gdc_wait()
    if QUANTIZATION == "int4":
        acc = _sum_groups(
            weight_rows, SCALES + output, x, there, first, end, N, OUTPUTS, ROWS, STAGES
        )
    elif IS_WHOLE:
        acc = _sum_blocks(
            weight_rows, x, there, first * (DEPTH // STEP),
            tl.minimum(end * (DEPTH // STEP), (K + STEP - 1) // STEP),
            K, QUANTIZATION, STEP, OUTPUTS, ROWS, STAGES,
        )  # fmt: skip
    else:
        acc = block_product(
            weight_rows, x, SCALES, output, there, first, end,
            N, K, QUANTIZATION, DEPTH, ROWS,
        )  # fmt: skip
    if PDL:
        tl.extra.cuda.gdc_launch_dependents()
    return acc


@triton.constexpr_function
def row_length(num_inputs, quantization):
    """Values that hold one output's weights."""
    is_six_bits = quantization in ("q6_k", "q6_k_min")
    is_eight_bits = quantization in ("float", "fp8", "q8_0")
    quarters = 4 if is_eight_bits else (3 if is_six_bits else 2)  # of a value an input
    return num_inputs * quarters // 4


@triton.jit
def _prefetch(
    VALUES, tile, split,
    N: tl.constexpr, K: tl.constexpr, QUANTIZATION: tl.constexpr, DEPTH: tl.constexpr,
    SPLITS: tl.constexpr, OUTPUTS: tl.constexpr,
):  # fmt: skip
    """Ask the L2 cache for the start of each output's weights, which no kernel changes."""
    LENGTH: tl.constexpr = row_length(K, QUANTIZATION)
    LINE: tl.constexpr = 8 * _LINE_BYTES // VALUES.dtype.element_ty.primitive_bitwidth
    BLOCKS: tl.constexpr = (K + DEPTH - 1) // DEPTH
    first = split * BLOCKS // SPLITS * row_length(DEPTH, QUANTIZATION)
    output = tl.minimum(tile * OUTPUTS + tl.arange(0, OUTPUTS), N - 1).to(tl.int64)
    column = tl.minimum(first + tl.arange(0, _LINES) * LINE, LENGTH - 1)
    tl.inline_asm_elementwise(
        "prefetch.global.L2 [$1]; mov.u32 $0, 0;", "=r,l",
        [(VALUES + output[:, None] * LENGTH + column[None, :]).to(tl.int64)],
        dtype=tl.int32, is_pure=False, pack=1,
    )  # fmt: skip


@triton.jit
def _sum_blocks(
    W, X, there, first, end, K: tl.constexpr, QUANTIZATION: tl.constexpr, STEP: tl.constexpr,
    OUTPUTS: tl.constexpr, ROWS: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """Add the blocks from `first` to `end` in order, STEP inputs each, of `float` and fp8.

    The compiler drops the eviction hint where it makes loads run ahead (`cp.async`).
    """
    acc = tl.zeros([OUTPUTS, ROWS], tl.float32)
    for block in tl.range(first, end, num_stages=STAGES):
        k = block * STEP + tl.arange(0, STEP)
        if K % STEP == 0:
            weights = tl.load(W + k[None, :], eviction_policy="evict_first")
            inputs = tl.load(X + k[:, None], mask=there, other=0.0)
        else:
            inside = k < K
            weights = tl.load(
                W + k[None, :], mask=inside[None, :], other=0.0, eviction_policy="evict_first"
            )
            inputs = tl.load(X + k[:, None], mask=inside[:, None] & there, other=0.0)
        if QUANTIZATION == "fp8":
            weights = decoded_fp8(weights).to(inputs.dtype)
        acc = tl.dot(weights, inputs, acc, input_precision="ieee")
    return acc


@triton.jit
def _sum_groups(
    W, SCALES, X, there, first, end,
    N: tl.constexpr, OUTPUTS: tl.constexpr, ROWS: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """Add the groups of int4 from `first` to `end` in order, each times its scale.

    Triton loads only the tensor cores' inputs ahead, so an iteration of two groups loads the next
    one's scales. A group at `end` has scale 0 and adds 0.
    """
    acc = tl.zeros([OUTPUTS, ROWS], tl.float32)
    scale, other = _scales(SCALES, first, end, N)
    for block in tl.range(first, end, 2, num_stages=STAGES):
        next_scale, next_other = _scales(SCALES, block + 2, end, N)
        acc += _group_product(W, X, there, block, end) * scale[:, None]
        acc += _group_product(W, X, there, block + 1, end) * other[:, None]
        scale, other = next_scale, next_other
    return acc


@triton.jit
def _scales(SCALES, group, end, N: tl.constexpr):
    """Those of two groups, in their order."""
    return (
        tl.load(SCALES + group * N, mask=group < end, other=0.0),
        tl.load(SCALES + (group + 1) * N, mask=group + 1 < end, other=0.0),
    )


@triton.jit
def _group_product(W, X, there, group, end):
    """One group of 128 inputs: the low halves meet inputs 0..63, the high ones the rest."""
    j = tl.arange(0, 64)
    inside = group < end
    codes = tl.load(
        W + (group * 64 + j)[None, :], mask=inside, other=0, eviction_policy="evict_first"
    )
    first = tl.load(X + (group * 128 + j)[:, None], mask=there & inside, other=0.0)
    second = tl.load(X + (group * 128 + 64 + j)[:, None], mask=there & inside, other=0.0)
    low, high = decoded_int4(codes)
    acc = tl.dot(low.to(first.dtype), first, input_precision="ieee")
    return tl.dot(high.to(first.dtype), second, acc, input_precision="ieee")


@triton.jit
def scaled(acc, SCALES, tile, N: tl.constexpr, QUANTIZATION: tl.constexpr, OUTPUTS: tl.constexpr):
    """Apply the scales of fp8, one per output, to a tile's sums [OUTPUTS, ROWS]."""
    if QUANTIZATION == "fp8":
        n = tile * OUTPUTS + tl.arange(0, OUTPUTS)
        acc = acc * tl.load(SCALES + n, mask=n < N, other=0.0)[:, None]
    return acc


@triton.jit
def rows_of(row_block, ROWS: tl.constexpr):
    """The rows of a block [ROWS]."""
    return row_block * ROWS + tl.arange(0, ROWS)


@triton.jit
def place_of(tile, row_block, N: tl.constexpr, OUTPUTS: tl.constexpr):
    """Where the splits of a tile and a block of rows meet: one place for each pair."""
    return row_block * ((N + OUTPUTS - 1) // OUTPUTS) + tile


@triton.jit
def is_last(
    acc, PARTIALS, ARRIVED, place, split, SPLITS: tl.constexpr, OUTPUTS: tl.constexpr,
    ROWS: tl.constexpr,
):  # fmt: skip
    """Leave a split's sums at its place, and tell whether all splits there have done so."""
    last = True
    if SPLITS > 1:
        tl.store(PARTIALS + _partials_at(place, split, SPLITS, OUTPUTS, ROWS), acc)
        tl.debug_barrier()  # the sums of every thread come before the counter
        last = tl.atomic_add(ARRIVED + place, 1, sem="acq_rel", scope="gpu") == SPLITS - 1
    return last


@triton.jit
def sum_splits(
    acc, PARTIALS, ARRIVED, place, SPLITS: tl.constexpr, OUTPUTS: tl.constexpr, ROWS: tl.constexpr
):
    """Add what the splits left at a place, in their order, and set its counter back."""
    if SPLITS > 1:
        acc = tl.zeros([OUTPUTS, ROWS], tl.float32)
        for split in tl.static_range(SPLITS):
            at = _partials_at(place, split, SPLITS, OUTPUTS, ROWS)
            acc += tl.load(PARTIALS + at, cache_modifier=".cg")
        tl.store(ARRIVED + place, 0)
    return acc


@triton.jit
def _partials_at(place, split, SPLITS: tl.constexpr, OUTPUTS: tl.constexpr, ROWS: tl.constexpr):
    n, row = tl.arange(0, OUTPUTS)[:, None], tl.arange(0, ROWS)[None, :]
    first = (place.to(tl.int64) * SPLITS + split) * OUTPUTS
    return (first + n) * ROWS + row


@triton.jit
def row_factors(SQUARES, eps, num_rows, row_block, K: tl.constexpr, ROWS: tl.constexpr):
    """1 / sqrt(sum_b squares_b / K + eps) [ROWS]: every sixteenth block in its order, then those.

    Tiles of 16 blocks, since Triton has every thread load a vector of rows again and again.
    """
    BLOCKS: tl.constexpr = (K + 63) // 64
    row = rows_of(row_block, ROWS)
    total = tl.zeros([16, ROWS], tl.float32)
    for first in tl.static_range(0, BLOCKS, 16):  # unrolled, so that the loads run together
        block = first + tl.arange(0, 16)
        inside = (block < BLOCKS)[:, None] & (row < num_rows)[None, :]
        at = block[:, None] * num_rows + row[None, :]
        total += tl.load(SQUARES + at, mask=inside, other=0.0)
    squares = tl.reshape(sum_adjacent(total, 16, 1, ROWS), [ROWS])
    return tl.rsqrt(squares / K + eps)


@triton.jit
def sum_adjacent(x, SIZE: tl.constexpr, BLOCKS: tl.constexpr, ROWS: tl.constexpr):
    """Sum [SIZE, ROWS] over each of its BLOCKS, [BLOCKS, ROWS].

    Neighbours first, so in one order whatever the layout and the number of blocks.
    """
    for level in tl.static_range((SIZE // BLOCKS).bit_length() - 1):
        x = tl.sum(tl.reshape(x, [SIZE >> (level + 1), 2, ROWS]), axis=1)
    return x


@triton.jit
def split_pairs(x, OUTPUTS: tl.constexpr, ROWS: tl.constexpr):
    """Outputs 2i and 2i + 1 of [OUTPUTS, ROWS], each [OUTPUTS / 2, ROWS]."""
    return tl.split(tl.permute(tl.reshape(x, [OUTPUTS // 2, 2, ROWS]), [0, 2, 1]))
