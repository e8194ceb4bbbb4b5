"""Attention of the rows of several token trees over a KV arena, one layer.

Contract of `batch_attention(queries, keys, values, batch, scratch, out)`, here in PyTorch and in
`triton_kernel`:

    o_r = softmax(q_r . K_r^T / sqrt(d)) V_r,   K_r = the keys of the committed tokens of r's
                                                sequence and of r's ancestors, itself included

- `queries` [R, heads, d], the rotary embedding applied.
- `keys`, `values` [kv heads, positions, d] of the arena; `BatchMetadata` says what stands where.
  What stands anywhere else may hold anything, NaN too, and is never used. Unchanged on return.
- `scratch` is working memory of at least `scratch_size` numbers and counters.
- Writes `out` [R, heads, d]; rows that hold nothing keep what they had.

A row has the same bits beside any other rows, and whether its keys are committed or in flight. In
PyTorch, keys are reduced in chunks of 128 positions. All rows share the chunks that are committed as
a whole; each run has a copy of the rest, in the order of its text. So a key has one place in one
chunk, committed or not. Chunks are added as a tree of neighbours, where chunks of zeros at the end
change nothing.
"""

import torch
from torch.nn import functional

from kernels.batch import ROW_TILE, BatchMetadata
from kernels.device_limits import DeviceLimits
from kernels.scratch import Scratch, ScratchSize
from kernels.step_rows import CHUNK, Span

TAILS = 8  # programs that share the runs of a block: it has about as many at most
COMBINED_ROWS = 4  # packed rows whose shares one program adds up
_LEAST = -1e30  # of maxima, for rows that see nothing


def num_splits(kv_heads: int) -> int:
    """Shares of a text's key tiles. A row's bits depend on them, so rows and lengths must not.

    Measured on an H200. Of 7b (4 heads) 8 against 16: as fast in a step of one row behind 1,024
    tokens, 3 us a layer slower behind 4,096; of 32 rows 5 us faster, of 256 rows 30 us. Of 0.5b
    (2 heads) 16 against 8: 1 us slower behind 1,024 tokens, 2 us faster behind 4,096.
    """
    return 16 if kv_heads <= 2 else 8


def num_warps(limits: DeviceLimits, head_dim: int) -> int:
    """Four, or eight where a head's sums would not fit the registers of four.

    The order of sums over splits depends on them, so rows must not.
    """
    return 8 if head_dim > 64 and not limits.has_warp_groups else 4


def scratch_size(num_blocks: int, kv_heads: int, head_dim: int) -> ScratchSize:
    """What `num_blocks` row blocks take: of each head and share the sums, maxima and totals.

    A share for each split, and one for the tiles that the rows themselves stand in.
    """
    programs = num_blocks * kv_heads
    share = ROW_TILE * (head_dim + 2)
    return ScratchSize(programs * (num_splits(kv_heads) + 1) * share, 0)


def batch_attention(
    queries: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    batch: BatchMetadata,
    scratch: Scratch,  # noqa: ARG001 - the kernel's
    out: torch.Tensor,
) -> None:
    """o_r = softmax(q_r . K_r^T / sqrt(d)) V_r. Each sequence looks with all rows of the step."""
    heads, dim = queries.shape[1:]
    scaled = queries.float().unflatten(1, (keys.shape[0], -1)) * dim**-0.5
    packed = scaled.transpose(0, 1).flatten(1, 2)  # [kv heads, R * group, d]
    for span in batch.rows_on_host.spans:
        if span.num_rows:
            attended = _attend(packed, _chunks(keys, span), _chunks(values, span), span)
            by_row = attended.unflatten(1, (len(queries), -1)).transpose(0, 1)
            out[span.rows] = by_row.reshape(-1, heads, dim)[span.rows].to(out.dtype)


def _chunks(held: torch.Tensor, span: Span) -> torch.Tensor:
    """Float32 [kv heads, whole chunks and those of each run, 128, d] of an arena's layer."""
    whole = held[:, span.base : span.base + span.num_chunks * CHUNK]
    both: torch.Tensor = torch.cat([whole, held[:, span.tail.flatten()]], dim=1)
    return both.view(len(held), -1, CHUNK, held.shape[2]).float()


def _attend(
    packed: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, span: Span
) -> torch.Tensor:
    """Float32 [kv heads, R * group, d]."""
    scores = packed[:, None] @ keys.mT  # [kv heads, chunks, R * group, 128]
    behind = scores[:, span.num_chunks :].unflatten(2, (span.hidden.shape[1], -1))
    behind = behind.masked_fill(span.hidden, -torch.inf).flatten(2, 3)
    scores = torch.cat([scores[:, : span.num_chunks], behind], dim=1)
    largest = scores.amax(dim=(1, 3)).clamp_min(_LEAST)
    shares = torch.exp(scores - largest[:, None, :, None])
    parts = torch.cat([shares @ values, shares.sum(dim=3, keepdim=True)], dim=3)
    # A row's share of another run's chunks is 0.
    tails = parts[:, span.num_chunks :].unflatten(1, span.tail.shape[:2]).sum(dim=1)
    total = _added(torch.cat([parts[:, : span.num_chunks], tails], dim=1))
    return total[..., :-1] / total[..., -1:]


def _added(parts: torch.Tensor) -> torch.Tensor:
    """[kv heads, chunks, ...] -> [kv heads, ...]: neighbours, then neighbours of these."""
    while parts.shape[1] > 1:
        if parts.shape[1] % 2:
            parts = functional.pad(parts, (0, 0, 0, 0, 0, 1))
        parts = parts[:, 0::2] + parts[:, 1::2]
    return parts[:, 0]
