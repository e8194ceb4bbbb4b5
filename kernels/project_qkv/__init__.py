"""Normalises, projects to queries, keys and values, rotates, and writes keys and values.

Contract of `project_qkv(stream, weight, bias, cos_sin, batch, queries, keys, values, scratch)`, here
in PyTorch and in `triton_kernel`:

    y = (normed W^T) / sqrt(sum_b squares_b / H + eps) + bias
    y = (q of all heads, k of all kv heads, v of all kv heads), d numbers each
    in each head of q and k, the pair (2i, 2i+1) is rotated by the angle of (place, i):
        (a cos - b sin, b cos + a sin)

- `stream` is a `ResidualStream` of R rows. `bias` float32 [N].
- `cos_sin` float32 [places, d], of each place in the text the cosines of i = 0..d/2-1, then the
  sines. A row's place is the length of its sequence plus its depth.
- Writes `queries` [R, heads, d], and for rows that hold a token the keys and values
  [kv heads, positions, d] at the row's arena position (see `BatchMetadata`).
- The pairs are adjacent since the rows of `weight` are reordered, in queries and keys alike.
"""

import torch

from kernels.batch import BatchMetadata
from kernels.product import projected
from kernels.residual import ResidualStream
from kernels.scratch import Scratch
from kernels.weight import Weight


def project_qkv(
    stream: ResidualStream,
    weight: Weight,
    bias: torch.Tensor,
    cos_sin: torch.Tensor,
    batch: BatchMetadata,
    queries: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    scratch: Scratch,  # noqa: ARG001 - the kernel's
) -> None:
    """Queries, keys and values of all rows; the keys and values of a span stand side by side."""
    step = batch.rows_on_host
    rows, heads, dim = queries.shape
    kv_heads = keys.shape[0]
    y = (projected(stream, weight) + bias).view(rows, -1, dim)
    rotated = _rotate(y[:, : heads + kv_heads], cos_sin[step.places])
    queries.copy_(rotated[:, :heads])
    for span in step.spans:
        start = span.base + span.length
        there = slice(start, start + span.num_rows)
        keys[:, there] = rotated[span.rows, heads:].transpose(0, 1).to(keys.dtype)
        values[:, there] = y[span.rows, heads + kv_heads :].transpose(0, 1).to(values.dtype)


def _rotate(x: torch.Tensor, row_cos_sin: torch.Tensor) -> torch.Tensor:
    """(a cos - b sin, b cos + a sin) of the pairs of x [R, heads, d]."""
    cosines, sines = row_cos_sin[:, None].chunk(2, dim=2)
    a, b = x[..., 0::2], x[..., 1::2]
    return torch.stack([a * cosines - b * sines, b * cosines + a * sines], dim=3).flatten(2)
