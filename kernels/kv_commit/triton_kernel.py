"""The commit on a GPU, all layers in one launch. See the package for the contract."""

import torch
import triton
import triton.language as tl

from kernels.batch import BatchMetadata

_NUM_WARPS = 8  # for up to 128 rows of 128 numbers, all held at once


@triton.jit
def _move(HELD, source, target, moves):
    """HELD[target] = HELD[source]: all rows are read before the first one is written."""
    moved = tl.load(HELD + source, mask=moves)
    tl.debug_barrier()
    tl.store(HELD + target, moved, mask=moves)


@triton.jit
def kv_commit_kernel(
    K, V, BASES, COUNTS, LENGTHS, ROWS, layer_stride, head_stride,
    KV_HEADS: tl.constexpr, D: tl.constexpr, CAPACITY: tl.constexpr, ROW_TILE: tl.constexpr,
):  # fmt: skip
    """K, V [layers, KV_HEADS, positions, D]: of one layer and head, one sequence's rows.

    COUNTS, LENGTHS [S] and ROWS [S, CAPACITY]: the commit, see `BatchMetadata`. ROW_TILE >= CAPACITY.
    """
    layer, head = tl.program_id(0) // KV_HEADS, tl.program_id(0) % KV_HEADS
    sequence = tl.program_id(1)
    count = tl.load(COUNTS + sequence)
    if count == 0:
        return
    i, d = tl.arange(0, ROW_TILE), tl.arange(0, D)
    row = tl.load(ROWS + sequence * CAPACITY + i, mask=i < count, other=0)
    moves = ((i < count) & (row != i))[:, None]
    end = (tl.load(BASES + sequence) + tl.load(LENGTHS + sequence)).to(tl.int64)
    plane = layer.to(tl.int64) * layer_stride + head.to(tl.int64) * head_stride
    source = plane + (end + row)[:, None] * D + d[None, :]
    target = plane + (end + i)[:, None] * D + d[None, :]
    _move(K, source, target, moves)
    _move(V, source, target, moves)


def kv_commit(keys: torch.Tensor, values: torch.Tensor, batch: BatchMetadata) -> None:
    """One launch."""
    layers, kv_heads, _, dim = keys.shape
    capacity = batch.commit_rows.shape[1]
    kv_commit_kernel[(layers * kv_heads, batch.num_sequences)](
        keys, values, batch.bases, batch.commit_counts, batch.commit_lengths,
        batch.commit_rows, keys.stride(0), keys.stride(1),
        KV_HEADS=kv_heads, D=dim, CAPACITY=capacity,
        ROW_TILE=triton.next_power_of_2(capacity), num_warps=_NUM_WARPS,
    )  # fmt: skip
