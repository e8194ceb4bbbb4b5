"""The look-up in PyTorch. See the package for the contract."""

import torch

from kernels.residual import ResidualStream
from kernels.weight import Weight


def embed_rows(
    tokens: torch.Tensor, table: Weight, norm_weight: torch.Tensor, stream: ResidualStream
) -> None:
    """x = table[tokens], and what follows from it."""
    stream.write(table.rows(tokens.long()), norm_weight)
