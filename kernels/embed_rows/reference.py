"""The look-up in plain PyTorch. See the package for the contract."""

import torch

from kernels.residual import ResidualStream
from kernels.weight import Weight


def embed_rows(
    tokens: torch.Tensor,
    table: Weight,
    norm_weight: torch.Tensor,
    stream: ResidualStream,
) -> None:
    """x = table[tokens], x norm_weight, and the sums of x^2 over blocks of 64 columns."""
    stream.write(table.rows(tokens.long()), norm_weight)
