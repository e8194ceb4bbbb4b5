"""The projection in Triton. See the package for the contract."""

import torch
import triton
import triton.language as tl

from kernels.batch import BatchMetadata
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
def project_qkv_kernel(
    INPUTS, VALUES, SCALES, SQUARES, BIAS, COS_SIN,
    SEQUENCES, DEPTHS, BASES, LENGTHS, FIRST_ROWS,
    QUERIES, KEYS, CACHED_VALUES, PARTIALS, ARRIVED, key_head_stride, value_head_stride, eps,
    num_rows,
    HEADS: tl.constexpr, KV_HEADS: tl.constexpr, D: tl.constexpr,
    N: tl.constexpr, K: tl.constexpr, QUANTIZATION: tl.constexpr, DEPTH: tl.constexpr,
    STEP: tl.constexpr, SPLITS: tl.constexpr, OUTPUTS: tl.constexpr, ROWS: tl.constexpr,
    STAGES: tl.constexpr, PDL: tl.constexpr,
):  # fmt: skip
    """y = (x W^T) / sqrt(sum_b squares_b / K + eps) + bias, q and k rotated by their place.

    INPUTS [R, K], SQUARES [blocks, R], BIAS [N], COS_SIN [places, D], QUERIES [R, HEADS, D], KEYS and
    CACHED_VALUES [KV_HEADS, positions, D]; SEQUENCES, DEPTHS [R]; BASES, LENGTHS, FIRST_ROWS [S].
    """
    row_block, tile, split = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    acc = product(
        INPUTS, VALUES, SCALES, num_rows, tile, split, row_block,
        N, K, QUANTIZATION, DEPTH, STEP, SPLITS, OUTPUTS, ROWS, STAGES, PDL,
    )  # fmt: skip
    meeting = place_of(tile, row_block, N, OUTPUTS)
    if is_last(acc, PARTIALS, ARRIVED, meeting, split, SPLITS, OUTPUTS, ROWS):
        acc = sum_splits(acc, PARTIALS, ARRIVED, meeting, SPLITS, OUTPUTS, ROWS)
        n = tile * OUTPUTS + tl.arange(0, OUTPUTS)
        row = rows_of(row_block, ROWS)
        there = row < num_rows
        factors = row_factors(SQUARES, eps, num_rows, row_block, K, ROWS)
        bias = tl.load(BIAS + n, mask=n < N, other=0.0)
        y = scaled(acc, SCALES, tile, N, QUANTIZATION, OUTPUTS) * factors[None, :] + bias[:, None]

        sequence = tl.load(SEQUENCES + row, mask=there, other=-1)
        live = sequence >= 0  # of a row that holds nothing, only the queries are written
        length = tl.load(LENGTHS + sequence, mask=live, other=0)
        place = (length + tl.load(DEPTHS + row, mask=there, other=0)).to(tl.int64)
        y = _rotated(y, COS_SIN + place * D, tile, HEADS + KV_HEADS, D, OUTPUTS, ROWS)

        if tile * OUTPUTS < HEADS * D:
            at = row[None, :].to(tl.int64) * (HEADS * D) + n[:, None]
            inside = (n < HEADS * D)[:, None] & there[None, :]
            tl.store(QUERIES + at, y.to(QUERIES.dtype.element_ty), mask=inside)
        if tile * OUTPUTS + OUTPUTS > HEADS * D:
            base = tl.load(BASES + sequence, mask=live, other=0).to(tl.int64)
            first_row = tl.load(FIRST_ROWS + sequence, mask=live, other=0)
            position = base + length + row - first_row
            _keep(y, KEYS, key_head_stride, tile, position, live, HEADS, KV_HEADS, D, OUTPUTS)
            VALUE_HEAD: tl.constexpr = HEADS + KV_HEADS
            _keep(
                y, CACHED_VALUES, value_head_stride, tile, position, live, VALUE_HEAD, KV_HEADS, D,
                OUTPUTS,
            )  # fmt: skip


@triton.jit
def _keep(
    y, CACHE, head_stride, tile, position, live, FIRST_HEAD: tl.constexpr,
    HEADS: tl.constexpr, D: tl.constexpr, OUTPUTS: tl.constexpr,
):  # fmt: skip
    """Write what of y [OUTPUTS, ROWS] is of these heads to the rows' positions in CACHE."""
    n = tile * OUTPUTS + tl.arange(0, OUTPUTS)
    head = n // D - FIRST_HEAD
    start = tile * OUTPUTS - FIRST_HEAD * D
    if (start + OUTPUTS > 0) & (start < HEADS * D):  # a branch, as addresses take many registers
        inside = ((head >= 0) & (head < HEADS))[:, None] & live[None, :]
        at = (head.to(tl.int64) * head_stride + n % D)[:, None] + (position * D)[None, :]
        tl.store(CACHE + at, y.to(CACHE.dtype.element_ty), mask=inside)


@triton.jit
def _rotated(
    y, COS_SIN, tile, ROTATED: tl.constexpr, D: tl.constexpr, OUTPUTS: tl.constexpr,
    ROWS: tl.constexpr,
):  # fmt: skip
    """(a cos - b sin, b cos + a sin) of the pairs of y [OUTPUTS, ROWS] that lie in the first heads.

    COS_SIN [ROWS] points to the cosines and sines of the rows' places.
    """
    a, b = split_pairs(y, OUTPUTS, ROWS)
    pair = tile * (OUTPUTS // 2) + tl.arange(0, OUTPUTS // 2)
    rotated = (pair < ROTATED * (D // 2))[:, None]
    at = COS_SIN[None, :] + (pair % (D // 2))[:, None]
    cosine = tl.load(at, mask=rotated, other=1.0)
    sine = tl.load(at + D // 2, mask=rotated, other=0.0)
    pairs = tl.join(a * cosine - b * sine, b * cosine + a * sine)
    return tl.reshape(tl.permute(pairs, [0, 2, 1]), [OUTPUTS, ROWS])


def project_qkv(
    stream: ResidualStream,
    weight: Weight,
    bias: torch.Tensor,
    cos_sin: torch.Tensor,
    batch: BatchMetadata,
    queries: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    scratch: Scratch,
    *,
    programmatic: bool = False,
) -> None:
    """y = (normed W^T) / sqrt(sum_b squares_b / H + eps) + bias; rotates q and k, and writes k, v."""
    _, heads, dim = queries.shape
    grid, given = launch(stream.normed, weight, scratch, programmatic=programmatic)
    project_qkv_kernel[grid](
        SQUARES=stream.squares, BIAS=bias, COS_SIN=cos_sin, SEQUENCES=batch.sequences,
        DEPTHS=batch.depths, BASES=batch.bases, LENGTHS=batch.lengths, FIRST_ROWS=batch.first_rows,
        QUERIES=queries, KEYS=keys, CACHED_VALUES=values,
        key_head_stride=keys.stride(0), value_head_stride=values.stride(0),
        eps=stream.eps, HEADS=heads, KV_HEADS=keys.shape[0], D=dim, **given,
    )  # fmt: skip
