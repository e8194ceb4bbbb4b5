"""Attention of the rows of several token trees over a KV arena, one layer.

Contract, in every implementation of `batch_attention(queries, keys, values, batch, scratch, out)`:

    o_r = softmax(q_r . K_r^T / sqrt(d)) V_r,   K_r = the keys of the committed tokens of r's
                                                sequence and of r's ancestors, itself included

- `queries` [R, heads, d], the rotary embedding applied.
- `keys`, `values` [kv heads, positions, d] of the arena; see `BatchMetadata` for who stands where.
  What stands anywhere else may hold anything, NaN too, and is never used. Unchanged on return.
- `scratch` is working memory of at least `scratch_size` numbers and counters.
- Writes `out` [R, heads, d]; rows that hold nothing keep what they had.

`reference` is the formula. The Triton kernel gives a row the same bits whatever other rows ride
along, and whether a key of it is committed or in flight.
"""

from kernels.batch import ROW_TILE
from kernels.scratch import ScratchSize

_PROGRAMS = 128  # of one row block over all heads: about one per multiprocessor of a large GPU


def num_splits(kv_heads: int) -> int:
    """Shares of a text's key tiles: a power of two that comes from the model alone.

    A row's bits depend on it, so neither the rows nor the text's length may have a say.
    """
    return 1 << max(1, _PROGRAMS // kv_heads).bit_length() - 1


def scratch_size(num_blocks: int, kv_heads: int, head_dim: int) -> ScratchSize:
    """What `num_blocks` row blocks take: of each head and split the sums, maxima and totals."""
    programs = num_blocks * kv_heads
    share = ROW_TILE * (head_dim + 2)
    return ScratchSize(programs * num_splits(kv_heads) * share, 0)
