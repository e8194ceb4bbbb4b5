"""The projection by its formula, in plain PyTorch. See the package for the contract."""

import torch

from kernels.batch import BatchMetadata
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
    """y = (normed W^T) / sqrt(sum_b squares_b / H + eps) + bias; rotates q and k, and writes k, v."""
    rows, heads, dim = queries.shape
    y = stream.projected(weight) + bias
    parts = y.view(rows, -1, dim).split([heads, keys.shape[0], keys.shape[0]], dim=1)
    sequences = batch.sequences.long().clamp_min(0)
    live = batch.sequences >= 0
    lengths = torch.where(live, batch.lengths[sequences], 0).long()
    row_cos_sin = cos_sin[lengths + batch.depths]
    queries.copy_(_rotate(parts[0], row_cos_sin))
    offsets = torch.arange(rows, device=y.device) - batch.first_rows[sequences]
    positions = (batch.bases[sequences] + lengths + offsets)[live]
    keys[:, positions] = _rotate(parts[1], row_cos_sin)[live].transpose(0, 1).to(keys.dtype)
    values[:, positions] = parts[2][live].transpose(0, 1).to(values.dtype)


def _rotate(x: torch.Tensor, row_cos_sin: torch.Tensor) -> torch.Tensor:
    """(a cos - b sin, b cos + a sin) of the pairs of x [R, heads, d]."""
    cosines, sines = row_cos_sin[:, None].chunk(2, dim=2)
    a, b = x[..., 0::2], x[..., 1::2]
    return torch.stack([a * cosines - b * sines, b * cosines + a * sines], dim=3).flatten(2)
