"""Attention of the rows of several token trees over a KV arena, one layer.

Contract, in every implementation of `batch_attention(queries, keys, values, batch, scratch, out)`:

    o_r = softmax(q_r . K_r^T / sqrt(d)) V_r,   K_r = the keys of the committed tokens of r's
                                                sequence and of r's ancestors, itself included

- `queries` [R, heads, d], the rotary embedding applied.
- `keys`, `values` [kv heads, positions, d] of the arena; see `BatchMetadata` for who stands where.
  What stands anywhere else may hold anything, NaN too, and is never used. Unchanged on return.
- `scratch` is working memory of at least `scratch_size` numbers and counters.
- Writes `out` [R, heads, d]; rows that hold nothing keep what they had.

A row has the same bits whatever other rows ride along, and whether a key of it is committed or in
flight.
"""

from typing import NamedTuple

from kernels.batch import ROW_TILE
from kernels.device_limits import LEAST_SHARED_BYTES, DeviceLimits
from kernels.scratch import ScratchSize

TAILS = 8  # programs that share the runs of a block: it has about as many at most
COMBINED_ROWS = 4  # packed rows whose shares one program adds up


class AttentionCut(NamedTuple):
    """How a device runs an attention program, whatever the rows: warps order the sums over splits."""

    num_warps: int
    num_stages: int


def num_splits(kv_heads: int) -> int:
    """Shares of a text's key tiles. A row's bits follow them, so neither rows nor lengths have a say.

    Measured on an H200. Of 7b (4 heads) 8 against 16: as fast in a step of one row behind 1,024
    tokens, 3 us a layer slower behind 4,096; of 32 rows 5 us faster, of 256 rows 30 us. Of 0.5b
    (2 heads) 16 against 8: 1 us slower behind 1,024 tokens, 2 us faster behind 4,096.
    """
    return 16 if kv_heads <= 2 else 8


def attention_cut(limits: DeviceLimits, head_dim: int) -> AttentionCut:
    """Four warps, and twice as many where a head's sums would not fit the registers of four."""
    is_tight = (
        head_dim > 64 and not limits.has_warp_groups and limits.architecture > 0
    )  # AMD's have more
    num_stages = 3 if limits.shared_bytes >= LEAST_SHARED_BYTES else 2
    return AttentionCut(num_warps=8 if is_tight else 4, num_stages=num_stages)


def scratch_size(num_blocks: int, kv_heads: int, head_dim: int) -> ScratchSize:
    """What `num_blocks` row blocks take: of each head and share the sums, maxima and totals.

    A share for each split, and one for the tiles that the rows themselves stand in.
    """
    programs = num_blocks * kv_heads
    share = ROW_TILE * (head_dim + 2)
    return ScratchSize(programs * (num_splits(kv_heads) + 1) * share, 0)
