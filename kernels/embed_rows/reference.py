"""The look-up in plain PyTorch. See the package for the contract."""

import torch

from kernels.batch import BatchMetadata
from kernels.residual import ResidualStream


def embed_rows(
    batch: BatchMetadata,
    table: torch.Tensor,
    norm_weight: torch.Tensor,
    stream: ResidualStream,
) -> None:
    """x = table[tokens], x norm_weight, and the sums of x^2 over blocks of 64 columns."""
    stream.write(table[batch.tokens.long()].float(), norm_weight)
