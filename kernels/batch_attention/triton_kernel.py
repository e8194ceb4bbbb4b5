"""Batch attention on a GPU, in canonical order. See the package for the contract.

Keys are reduced in tiles of 64 places of the text. A row's own tile is a share of its own. Of the
tiles before it, tile t belongs to split t mod SPLITS, and a split takes its tiles in ascending order.
A tile of committed keys is one product for all rows of a block. In later tiles a key has its place
whether it is committed or in flight: each run gathers its own path, and a row of another run sees no
key of it and stays as it was. TAILS programs share the runs' last tiles, which changes no bit. The
row tile is 64 also for one row, so the instruction is the same. So a row has plain decoding's bits.

A second kernel adds the splits, many rows at once: the last program alone would take longer for a
block's shares than the attention of a short text takes.

What rounds is written as `fma`, and the compiler fuses nothing else: masked and unmasked products
round alike.
"""

from typing import Any

import torch
import triton
import triton.language as tl

from kernels.batch import KEY_TILE, ROW_TILE, BatchMetadata
from kernels.batch_attention import COMBINED_ROWS, TAILS, num_splits, num_warps
from kernels.device_limits import early_launch, limits_of
from kernels.scratch import Scratch

_LOG2_E = 1.4426950408889634
_STAGES = 3  # key tiles of `attend_kernel` whose loads are under way
_NOTHING: tl.constexpr = tl.constexpr(-1.0e30)  # not infinity: rows that see nothing stay finite
BATCH_ARRAYS = (
    "PATHS", "BASES", "LENGTHS", "FIRST_ROWS", "NUM_ROWS", "RUNS", "DEPTHS",
    "BLOCK_SEQUENCES", "BLOCK_STARTS", "BLOCK_FIRST_RUNS", "BLOCK_END_RUNS",
)  # fmt: skip


@triton.jit
def _reduce(q, k, v, visible, scale, top, total, acc, MASKED: tl.constexpr):
    """Take one key tile into the running softmax, in base 2.

    scores = q k;  p = 2^((scores - top) scale);  total = sum p;  acc = p v

    `q` [M, D], `k` [D, N], `v` [N, D], `visible` [M, N]; `top` and `total` [M], `acc` [M, D]. A row
    that sees no key keeps all three to the bit: 2^0 = 1 times what was, plus zeros.
    """
    scores = tl.dot(q, k, input_precision="ieee")
    if MASKED:
        scores = tl.where(visible, scores, _NOTHING)
    new_top = tl.maximum(top, tl.max(scores, 1))
    p = tl.exp2(tl.fma(scores, scale, -(new_top * scale)[:, None]))
    if MASKED:
        p = tl.where(visible, p, 0.0)
    decay = tl.exp2((top - new_top) * scale)
    total = tl.fma(total, decay, tl.sum(p, 1))
    acc = tl.dot(p.to(v.dtype), v, acc * decay[:, None], input_precision="ieee")
    return new_top, total, acc


@triton.jit
def _gather(K, V, path, arena, length, ahead, there, D: tl.constexpr):
    """Keys [D, N] and values [N, D] of a run's text, `ahead` [N] tokens behind the committed ones.

    `path` points to the run's offsets. Zeros, whatever stands there, where not `there`.
    """
    d = tl.arange(0, D)
    offset = tl.load(path + ahead, mask=there & (ahead >= 0), other=0)
    at = arena + (length + tl.where(ahead < 0, ahead, offset)).to(tl.int64) * D
    k = tl.load(K + at[None, :] + d[:, None], mask=there[None, :], other=0.0)
    v = tl.load(V + at[:, None] + d[None, :], mask=there[:, None], other=0.0)
    return k, v


@triton.jit
def _leave(share, top, total, acc, live, ROW_TILE: tl.constexpr, D: tl.constexpr):
    """Store acc [ROW_TILE, D], then top and total [ROW_TILE], for the combination."""
    m, d = tl.arange(0, ROW_TILE), tl.arange(0, D)
    tl.store(share + m[:, None] * D + d[None, :], acc, mask=live[:, None])
    tl.store(share + ROW_TILE * D + m, top, mask=live)
    tl.store(share + ROW_TILE * D + ROW_TILE + m, total, mask=live)


@triton.jit
def _attend_split(
    q, K, V, PATHS, arena, capacity, length, live, run_of_row, depth, scale,
    first_run, end_run, split, top, total, acc,
    SPLITS: tl.constexpr, KEY_TILE: tl.constexpr, D: tl.constexpr,
):  # fmt: skip
    """Take a split's tiles before the rows' own ones."""
    n, d = tl.arange(0, KEY_TILE), tl.arange(0, D)
    num_full, own_tile = length // KEY_TILE, (length + depth) // KEY_TILE
    for tile in tl.range(split, num_full, SPLITS):
        at = arena + (tile * KEY_TILE + n).to(tl.int64) * D
        k = tl.load(K + at[None, :] + d[:, None])
        v = tl.load(V + at[:, None] + d[None, :])
        top, total, acc = _reduce(q, k, v, live, scale, top, total, acc, MASKED=False)
    # Tiles that a branch crosses: there are none where the tree does not reach so far.
    first_tile = num_full + (split + SPLITS - num_full % SPLITS) % SPLITS
    for tile in tl.range(first_tile, tl.max(own_tile), SPLITS):
        ahead = tile * KEY_TILE + n - length  # depth of the key at each place, below 0: committed
        for run in tl.range(first_run, end_run):
            mine = (run_of_row == run) & (tile < own_tile)
            there = ahead <= tl.max(tl.where(mine, depth, -1))
            k, v = _gather(
                K, V, PATHS + capacity.to(tl.int64) * run, arena, length, ahead, there, D
            )
            visible = mine[:, None] & there[None, :]
            top, total, acc = _reduce(q, k, v, visible, scale, top, total, acc, MASKED=True)
    return top, total, acc


@triton.jit
def _attend_tails(
    q, K, V, PATHS, arena, capacity, length, run_of_row, depth, scale,
    first_run, end_run, top, total, acc,
    TAILS: tl.constexpr, KEY_TILE: tl.constexpr, D: tl.constexpr,
):  # fmt: skip
    """Take the tiles that the rows of every TAILS-th run stand in: of each row only its own."""
    n = tl.arange(0, KEY_TILE)
    own_tile = (length + depth) // KEY_TILE
    first_tile = tl.min(tl.where(depth >= 0, own_tile, 2147483647))
    for run in tl.range(first_run, end_run, TAILS):
        for tile in tl.range(first_tile, tl.max(own_tile) + 1):
            ahead = tile * KEY_TILE + n - length
            mine = (run_of_row == run) & (tile == own_tile)
            there = ahead <= tl.max(tl.where(mine, depth, -1))
            k, v = _gather(
                K, V, PATHS + capacity.to(tl.int64) * run, arena, length, ahead, there, D
            )
            visible = mine[:, None] & (ahead[None, :] <= depth[:, None])
            top, total, acc = _reduce(q, k, v, visible, scale, top, total, acc, MASKED=True)
    return top, total, acc


# Buckets share one binary: neither the capacity nor where an array starts may shape the code.
@triton.jit(do_not_specialize=["capacity"], do_not_specialize_on_alignment=BATCH_ARRAYS)
def attend_kernel(
    Q, K, V, PARTIALS,
    PATHS, BASES, LENGTHS, FIRST_ROWS, NUM_ROWS, RUNS, DEPTHS,
    BLOCK_SEQUENCES, BLOCK_STARTS, BLOCK_FIRST_RUNS, BLOCK_END_RUNS,
    scale, head_stride, capacity,
    GROUP: tl.constexpr, KV_HEADS: tl.constexpr, D: tl.constexpr, SPLITS: tl.constexpr,
    TAILS: tl.constexpr, ROW_TILE: tl.constexpr, KEY_TILE: tl.constexpr, PDL: tl.constexpr,
):  # fmt: skip
    """Take the key tiles of one share into softmax(q K^T) V of one row block and kv head.

    Of the programs the first axis is a block and a kv head of it, the second a share: those below
    SPLITS take the text's tiles, the others the last tiles of every TAILS-th run.

    Q [R, KV_HEADS * GROUP, D]; K, V [KV_HEADS, positions, D]; batch arrays as in `BatchMetadata`.
    Packed row m of a sequence is its row m // GROUP, head m % GROUP of the kv head's group.
    PARTIALS [blocks, KV_HEADS, SPLITS + 1] shares, each acc [ROW_TILE, D], top and total [ROW_TILE].
    """
    program, split = tl.program_id(0), tl.program_id(1)
    head, block = program % KV_HEADS, program // KV_HEADS
    # The batch was there before the kernel ahead of this one started, so no need to wait for it.
    sequence = tl.load(BLOCK_SEQUENCES + block)
    if sequence >= 0:
        length, num_rows = tl.load(LENGTHS + sequence), tl.load(NUM_ROWS + sequence)
        first_run = tl.load(BLOCK_FIRST_RUNS + block) + split - SPLITS  # of a tail
        end_run = tl.load(BLOCK_END_RUNS + block)
        is_behind = split >= (length + num_rows - 1) // KEY_TILE  # the deepest tree there can be
        if not tl.where(split < SPLITS, is_behind, first_run >= end_run):
            first_row, start = tl.load(FIRST_ROWS + sequence), tl.load(BLOCK_STARTS + block)
            num_packed = tl.minimum(num_rows * GROUP - start, ROW_TILE)
            m, d = tl.arange(0, ROW_TILE), tl.arange(0, D)
            live = m < num_packed
            row = first_row + (start + m) // GROUP
            run_of_row = tl.load(RUNS + row, mask=live, other=-1)
            depth = tl.load(DEPTHS + row, mask=live, other=-1)
            arena = head.to(tl.int64) * head_stride + tl.load(BASES + sequence).to(tl.int64) * D
            if PDL:
                tl.extra.cuda.gdc_wait()
                tl.extra.cuda.gdc_launch_dependents()

            q_row = row.to(tl.int64) * (KV_HEADS * GROUP) + head * GROUP + (start + m) % GROUP
            q = tl.load(Q + q_row[:, None] * D + d[None, :], mask=live[:, None], other=0.0)
            top = tl.full([ROW_TILE], _NOTHING, tl.float32)
            total = tl.full([ROW_TILE], 0.0, tl.float32)
            acc = tl.full([ROW_TILE, D], 0.0, tl.float32)
            if split < SPLITS:
                top, total, acc = _attend_split(
                    q, K, V, PATHS, arena, capacity, length, live, run_of_row, depth, scale,
                    tl.load(BLOCK_FIRST_RUNS + block), end_run, split, top, total, acc,
                    SPLITS, KEY_TILE, D,
                )  # fmt: skip
            else:
                top, total, acc = _attend_tails(
                    q, K, V, PATHS, arena, capacity, length, run_of_row, depth, scale,
                    first_run, end_run, top, total, acc, TAILS, KEY_TILE, D,
                )  # fmt: skip
                live = live & (run_of_row >= first_run) & ((run_of_row - first_run) % TAILS == 0)

            share = program.to(tl.int64) * (SPLITS + 1) + tl.minimum(split, SPLITS)
            _leave(PARTIALS + share * (ROW_TILE * (D + 2)), top, total, acc, live, ROW_TILE, D)
    elif PDL:  # a step without any row must not let the next kernel overtake the last one
        tl.extra.cuda.gdc_wait()


@triton.jit
def _share(share, m, live, ROW_TILE: tl.constexpr, D: tl.constexpr):
    """Rows m of what `_leave` stored: top, total and acc."""
    acc_at = share + m[:, None] * D + tl.arange(0, D)[None, :]
    return (
        tl.load(share + ROW_TILE * D + m, mask=live, other=_NOTHING),
        tl.load(share + ROW_TILE * D + ROW_TILE + m, mask=live, other=0.0),
        tl.load(acc_at, mask=live[:, None], other=0.0),
    )


@triton.jit
def _combined(
    shares, m, live, used, scale, SPLITS: tl.constexpr, ROW_TILE: tl.constexpr, D: tl.constexpr
):  # fmt: skip
    """The attention of packed rows m, of which `used` splits left a share beside the tail's."""
    SHARE: tl.constexpr = ROW_TILE * (D + 2)
    every, d = tl.arange(0, SPLITS)[:, None], tl.arange(0, D)
    filled = (every < used) & live[None, :]
    tops_at = shares + every * SHARE + ROW_TILE * D + m[None, :]
    accs_at = (shares + every * SHARE + m[None, :] * D)[:, :, None] + d[None, None, :]
    tops = tl.load(tops_at, mask=filled, other=_NOTHING)
    totals = tl.load(tops_at + ROW_TILE, mask=filled, other=0.0)
    accs = tl.load(accs_at, mask=filled[:, :, None], other=0.0)
    tail_top, tail_total, tail_acc = _share(shares + SPLITS * SHARE, m, live, ROW_TILE, D)
    top = tl.maximum(tl.max(tops, 0), tail_top)
    weights = tl.where(filled, tl.exp2((tops - top[None, :]) * scale), 0.0)
    tail_weight = tl.exp2((tail_top - top) * scale)
    total = tail_total * tail_weight + tl.sum(totals * weights, 0)
    acc = tail_acc * tail_weight[:, None] + tl.sum(accs * weights[:, :, None], 0)
    return acc / tl.where(live, total, 1.0)[:, None]


@triton.jit(do_not_specialize_on_alignment=BATCH_ARRAYS)
def combine_kernel(
    PARTIALS, OUT, LENGTHS, FIRST_ROWS, NUM_ROWS, BLOCK_SEQUENCES, BLOCK_STARTS, scale,
    GROUP: tl.constexpr, KV_HEADS: tl.constexpr, D: tl.constexpr, SPLITS: tl.constexpr,
    ROW_TILE: tl.constexpr, KEY_TILE: tl.constexpr, ROWS: tl.constexpr, PDL: tl.constexpr,
):  # fmt: skip
    """out = sum_s w_s acc_s / sum_s w_s total_s with w_s = 2^((top_s - top) scale).

    ROWS packed rows of one block and kv head a program.
    PARTIALS as `attend_kernel` leaves them, OUT [R, KV_HEADS * GROUP, D].
    """
    program, chunk_of_rows = tl.program_id(0), tl.program_id(1)
    head, block = program % KV_HEADS, program // KV_HEADS
    SHARE: tl.constexpr = ROW_TILE * (D + 2)
    sequence = tl.load(BLOCK_SEQUENCES + block)
    if sequence >= 0:
        num_rows, start = tl.load(NUM_ROWS + sequence), tl.load(BLOCK_STARTS + block)
        num_packed = num_rows * GROUP - start
        if chunk_of_rows * ROWS < num_packed:
            end = tl.load(LENGTHS + sequence) + num_rows
            used = tl.minimum((end - 1) // KEY_TILE, SPLITS)  # splits that left something
            packed = tl.load(FIRST_ROWS + sequence) * GROUP + start  # heads of this kv head
            m, d = chunk_of_rows * ROWS + tl.arange(0, ROWS), tl.arange(0, D)
            live = m < num_packed
            shares = PARTIALS + program.to(tl.int64) * ((SPLITS + 1) * SHARE)
            if PDL:
                tl.extra.cuda.gdc_wait()
                tl.extra.cuda.gdc_launch_dependents()

            o = _combined(shares, m, live, used, scale, SPLITS, ROW_TILE, D)
            packed += m
            out = (packed // GROUP).to(tl.int64) * (KV_HEADS * GROUP)
            out += head * GROUP + packed % GROUP
            out_at = OUT + out[:, None] * D + d[None, :]
            tl.store(out_at, o.to(OUT.dtype.element_ty), mask=live[:, None])
    elif PDL:  # a step without any row must not let the next kernel overtake the last one
        tl.extra.cuda.gdc_wait()


def batch_attention(
    queries: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    batch: BatchMetadata,
    scratch: Scratch,
    out: torch.Tensor,
    *,
    programmatic: bool = False,
) -> None:
    """Two launches; `programmatic` lets each kernel start while the one before it ends."""
    (_, heads, dim), kv_heads, splits = queries.shape, keys.shape[0], num_splits(keys.shape[0])
    programs, scale = batch.num_blocks * kv_heads, _LOG2_E / dim**0.5
    constants: dict[str, Any] = {
        "GROUP": heads // kv_heads, "KV_HEADS": kv_heads, "D": dim, "SPLITS": splits,
        "ROW_TILE": ROW_TILE, "KEY_TILE": KEY_TILE, "PDL": programmatic,
        "num_warps": num_warps(limits_of(queries.device), dim), "enable_fp_fusion": False,
        **early_launch(programmatic=programmatic),
    }  # fmt: skip
    attend_kernel[(programs, splits + TAILS)](
        queries, keys, values, scratch.partials,
        batch.paths, batch.bases, batch.lengths, batch.first_rows, batch.num_rows,
        batch.runs, batch.depths, batch.block_sequences, batch.block_starts,
        batch.block_first_runs, batch.block_end_runs,
        scale, keys.stride(0), batch.capacity,
        TAILS=TAILS, num_stages=_STAGES, **constants,
    )  # fmt: skip
    combine_kernel[(programs, ROW_TILE // COMBINED_ROWS)](
        scratch.partials, out, batch.lengths, batch.first_rows, batch.num_rows,
        batch.block_sequences, batch.block_starts, scale,
        ROWS=COMBINED_ROWS, **constants,
    )  # fmt: skip
