"""The four products of a layer, and what flows between them."""

import torch

from kernels.batch import BatchMetadata
from kernels.portable.rows import rows_of
from kernels.residual import ResidualStream
from kernels.scratch import Scratch
from kernels.weight import Weight

_BLOCK = 64  # columns that one sum of squares stands for


def embed_rows(
    tokens: torch.Tensor, table: Weight, norm_weight: torch.Tensor, stream: ResidualStream
) -> None:
    """x = table[tokens], and what `write` makes of it."""
    write(stream, table.rows(tokens.long()), norm_weight)


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
    step = rows_of(batch)
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


def skinny_matmul(
    inputs: torch.Tensor,
    weight: Weight,
    norm_weight: torch.Tensor,
    stream: ResidualStream,
    scratch: Scratch,  # noqa: ARG001 - the kernel's
) -> None:
    """x = residual + inputs W^T, and what `write` makes of it."""
    write(stream, stream.residual + product(inputs, weight), norm_weight)


def gate_up(
    stream: ResidualStream,
    weight: Weight,
    out: torch.Tensor,
    scratch: Scratch,  # noqa: ARG001 - the kernel's
) -> None:
    """out_i = silu(y_2i) y_2i+1."""
    y = projected(stream, weight)
    out.copy_(torch.nn.functional.silu(y[:, 0::2]) * y[:, 1::2])


def product(x: torch.Tensor, weight: Weight) -> torch.Tensor:
    """x W^T in the type of x, which is the one that W is held in; float32 [R, N]."""
    held = weight.values if weight.quantization == "float" else weight.dense().to(x.dtype)
    return (x @ held.T).float()


def projected(stream: ResidualStream, weight: Weight) -> torch.Tensor:
    """(normed W^T) / sqrt(sum_b squares_b / H + eps), float32 [R, N]."""
    factors = torch.rsqrt(stream.squares.sum(dim=0) / stream.normed.shape[1] + stream.eps)
    return product(stream.normed, weight) * factors[:, None]


def write(stream: ResidualStream, x: torch.Tensor, norm_weight: torch.Tensor) -> None:
    """Hold x float32 [R, H] as a `ResidualStream` does."""
    stream.residual.copy_(x)
    stream.normed.copy_(x * norm_weight)
    squares = x * x
    if lacking := -x.shape[1] % _BLOCK:
        squares = torch.nn.functional.pad(squares, (0, lacking))
    stream.squares.copy_(squares.unflatten(1, (-1, _BLOCK)).sum(dim=2).T)


def _rotate(x: torch.Tensor, row_cos_sin: torch.Tensor) -> torch.Tensor:
    """(a cos - b sin, b cos + a sin) of the pairs of x [R, heads, d]."""
    cosines, sines = row_cos_sin[:, None].chunk(2, dim=2)
    a, b = x[..., 0::2], x[..., 1::2]
    return torch.stack([a * cosines - b * sines, b * cosines + a * sines], dim=3).flatten(2)
