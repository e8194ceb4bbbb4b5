"""The main loop of the skinny products in Triton. See the package."""

from typing import Any

import triton
import triton.language as tl

from kernels.blocks.triton_kernel import block_product
from kernels.product.tiles import num_blocks, require_scratch, tile_for
from kernels.scratch import Scratch
from kernels.weight import Weight


def launch(
    weight: Weight, rows: int, scratch: Scratch | None, *, programmatic: bool
) -> tuple[tuple[int, int], dict[str, Any]]:
    """Return the grid of a product, and the constants and options of its kernel.

    Without a scratch nothing is split. Raises ValueError where the sums of the splits would not fit.

    Without fused multiply and add, whose choice could follow the layout and so the row tile: what
    remains to the compiler is the tensor cores' own arithmetic.
    """
    outputs, inputs = weight.num_outputs, weight.num_inputs
    if scratch is not None:
        require_scratch(scratch, weight, rows)
    tile = tile_for(outputs, inputs, rows, weight.quantization, whole=scratch is None)
    constants = {
        "N": outputs,
        "K": inputs,
        "QUANTIZATION": weight.quantization,
        "DEPTH": tile.depth,
        "SPLITS": tile.splits,
        "ROWS": tile.rows,
        "PDL": programmatic,
        "num_warps": tile.num_warps,
        "num_stages": tile.num_stages,
        "enable_fp_fusion": False,
    }
    if programmatic:  # the interpreter does not know the option
        constants["launch_pdl"] = True
    return (num_blocks(outputs), tile.splits), constants


@triton.jit
def product(
    INPUTS,
    VALUES,
    SCALES,
    num_rows,
    N: tl.constexpr,
    K: tl.constexpr,
    QUANTIZATION: tl.constexpr,
    DEPTH: tl.constexpr,
    SPLITS: tl.constexpr,
    ROWS: tl.constexpr,
    PDL: tl.constexpr,
):
    """acc = W x^T over the split's inputs, float32 [64, ROWS], of program (tile, split).

    INPUTS [num_rows, K]; VALUES and SCALES of a `Weight`. Outputs beyond N are those of N - 1, rows
    beyond num_rows zeros. The scales of fp8 are left to `scaled`.
    """
    BLOCKS: tl.constexpr = (K + DEPTH - 1) // DEPTH
    IS_WHOLE: tl.constexpr = QUANTIZATION == "float" or QUANTIZATION == "fp8"
    IS_SIX_BITS: tl.constexpr = QUANTIZATION == "q6_k" or QUANTIZATION == "q6_k_min"
    IS_EIGHT_BITS: tl.constexpr = IS_WHOLE or QUANTIZATION == "q8_0"
    QUARTERS: tl.constexpr = (
        4 if IS_EIGHT_BITS else (3 if IS_SIX_BITS else 2)
    )  # of a value an input
    IS_OWN: tl.constexpr = IS_WHOLE or QUANTIZATION == "int4"
    split = tl.program_id(1)
    first = split * BLOCKS // SPLITS
    output = tl.minimum(tl.program_id(0) * 64 + tl.arange(0, 64), N - 1).to(tl.int64)
    row = tl.arange(0, ROWS)
    there = (row < num_rows)[None, :]
    weight_rows = VALUES + output[:, None] * (K * QUARTERS // 4)
    x = INPUTS + row[None, :].to(tl.int64) * K
    if PDL:
        _prefetch(weight_rows, first * (DEPTH * QUARTERS // 4), K * QUARTERS // 4)
        tl.extra.cuda.gdc_wait()
    end = (split + 1) * BLOCKS // SPLITS
    if IS_OWN:
        acc = _own_product(
            weight_rows, x, SCALES, output, there, first, end, N, K, QUANTIZATION, DEPTH, ROWS
        )
    else:
        acc = block_product(
            weight_rows, x, SCALES, output, there, first, end, N, K, QUANTIZATION, DEPTH, ROWS
        )
    if PDL:
        tl.extra.cuda.gdc_launch_dependents()
    return acc


@triton.jit
def _own_product(
    WEIGHT_ROWS,
    X,
    SCALES,
    output,
    there,
    first,
    end,
    N: tl.constexpr,
    K: tl.constexpr,
    QUANTIZATION: tl.constexpr,
    DEPTH: tl.constexpr,
    ROWS: tl.constexpr,
):
    """The sums of whole weights, fp8 and int4 over some iterations: see `block_product`."""
    BLOCKS: tl.constexpr = (K + DEPTH - 1) // DEPTH
    acc = tl.zeros([64, ROWS], tl.float32)
    if QUANTIZATION == "int4":  # Triton runs only those loads ahead that the tensor cores take
        scale = tl.load(SCALES + first * N + output)
    for block in tl.range(first, end):
        if QUANTIZATION == "int4":
            next_scale = tl.load(SCALES + tl.minimum(block + 1, BLOCKS - 1) * N + output)
            group = _group_product(WEIGHT_ROWS + block * 64, X + block * 128, there)
            acc += group * scale[:, None]
            scale = next_scale
        else:
            k = block * DEPTH + tl.arange(0, DEPTH)
            w = WEIGHT_ROWS + k[None, :]
            if K % DEPTH == 0:
                weights = tl.load(w, eviction_policy="evict_first")
                inputs = tl.load(X + k[:, None], mask=there, other=0.0)
            else:
                inside = k < K
                weights = tl.load(w, mask=inside[None, :], other=0.0, eviction_policy="evict_first")
                inputs = tl.load(X + k[:, None], mask=inside[:, None] & there, other=0.0)
            if QUANTIZATION == "fp8":  # by way of float32, for which there are packed instructions
                weights = weights.to(tl.float32).to(inputs.dtype)
            acc = tl.dot(weights, inputs, acc, input_precision="ieee")
    return acc


@triton.jit
def _prefetch(ROWS_OF_VALUES, first, STRIDE: tl.constexpr):
    """Ask the L2 cache for 1 KiB of each output's weights, which no kernel ahead can change."""
    LINE: tl.constexpr = 1024 // ROWS_OF_VALUES.dtype.element_ty.primitive_bitwidth  # 128 bytes
    column = tl.minimum(first + tl.arange(0, 8) * LINE, STRIDE - 1)
    tl.inline_asm_elementwise(
        "prefetch.global.L2 [$1]; mov.u32 $0, 0;",
        "=r,l",
        [(ROWS_OF_VALUES + column[None, :]).to(tl.int64)],
        dtype=tl.int32,
        is_pure=False,
        pack=1,
    )


@triton.jit
def _group_product(W, X, there):
    """One group of 128 inputs in int4: the low halves meet inputs 0..63, the high ones the rest."""
    j = tl.arange(0, 64)
    codes = tl.load(W + j[None, :], eviction_policy="evict_first")
    first = tl.load(X + j[:, None], mask=there, other=0.0)
    second = tl.load(X + 64 + j[:, None], mask=there, other=0.0)
    acc = tl.dot(_signed(codes & 15).to(first.dtype), first, input_precision="ieee")
    return tl.dot(_signed(codes >> 4).to(first.dtype), second, acc, input_precision="ieee")


@triton.jit
def _signed(codes):
    """code - 8 in bfloat16: 0x4300 | code are the bits of 128 + code, which takes no conversion."""
    zero = tl.full([64, 64], 0x4308, tl.uint16).to(tl.bfloat16, bitcast=True)
    return (codes.to(tl.uint16) | 0x4300).to(tl.bfloat16, bitcast=True) - zero


@triton.jit
def scaled(acc, SCALES, N: tl.constexpr, QUANTIZATION: tl.constexpr):
    """Apply the scales of fp8, one per output, to the sums [64, ROWS]."""
    if QUANTIZATION == "fp8":
        n = tl.program_id(0) * 64 + tl.arange(0, 64)
        acc = acc * tl.load(SCALES + n, mask=n < N, other=0.0)[:, None]
    return acc


@triton.jit
def is_last(acc, PARTIALS, ARRIVED, SPLITS: tl.constexpr, ROWS: tl.constexpr):
    """Leave a split's sums, and tell whether all splits of the tile have done so."""
    last = True
    if SPLITS > 1:
        tl.store(PARTIALS + _partials_at(tl.program_id(1), SPLITS, ROWS), acc)
        tl.debug_barrier()  # the sums of every thread come before the counter
        counter = ARRIVED + tl.program_id(0)
        last = tl.atomic_add(counter, 1, sem="acq_rel", scope="gpu") == SPLITS - 1
    return last


@triton.jit
def sum_splits(acc, PARTIALS, ARRIVED, SPLITS: tl.constexpr, ROWS: tl.constexpr):
    """Add what the splits of the tile left, in their order, and set its counter back."""
    if SPLITS > 1:
        acc = tl.zeros([64, ROWS], tl.float32)
        for split in tl.static_range(SPLITS):
            acc += tl.load(PARTIALS + _partials_at(split, SPLITS, ROWS), cache_modifier=".cg")
        tl.store(ARRIVED + tl.program_id(0), 0)
    return acc


@triton.jit
def _partials_at(split, SPLITS: tl.constexpr, ROWS: tl.constexpr):
    n, row = tl.arange(0, 64)[:, None], tl.arange(0, ROWS)[None, :]
    first = (tl.program_id(0).to(tl.int64) * SPLITS + split) * 64
    return (first + n) * ROWS + row


@triton.jit
def row_factors(SQUARES, eps, num_rows, K: tl.constexpr, ROWS: tl.constexpr):
    """1 / sqrt(sum_b squares_b / K + eps) [ROWS]: every sixteenth block in its order, then those.

    Tiles of 16 blocks, since Triton has every thread load a vector of rows again and again.
    """
    BLOCKS: tl.constexpr = (K + 63) // 64
    row = tl.arange(0, ROWS)
    total = tl.zeros([16, ROWS], tl.float32)
    for first in tl.static_range(0, BLOCKS, 16):  # unrolled, so that the loads run together
        block = first + tl.arange(0, 16)
        inside = (block < BLOCKS)[:, None] & (row < num_rows)[None, :]
        at = block[:, None] * num_rows + row[None, :]
        total += tl.load(SQUARES + at, mask=inside, other=0.0)
    return tl.rsqrt(sum_adjacent(total, 16, ROWS) / K + eps)


@triton.jit
def sum_adjacent(x, SIZE: tl.constexpr, ROWS: tl.constexpr):
    """Sum [SIZE, ROWS] over its first axis, neighbours first: in one order whatever the layout."""
    for level in tl.static_range(SIZE.bit_length() - 1):
        x = tl.sum(tl.reshape(x, [SIZE >> (level + 1), 2, ROWS]), axis=1)
    return tl.reshape(x, [ROWS])


@triton.jit
def split_pairs(x, ROWS: tl.constexpr):
    """Outputs 2i and 2i + 1 of [64, ROWS], each [32, ROWS]."""
    return tl.split(tl.permute(tl.reshape(x, [32, 2, ROWS]), [0, 2, 1]))
