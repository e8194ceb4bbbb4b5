"""The look-up in plain PyTorch. See the package for the contract."""

import torch
from torch.nn import functional

from kernels.batch import BatchMetadata
from kernels.residual import ResidualStream

_BLOCK = 64  # columns that one sum of squares stands for


def embed_rows(
    batch: BatchMetadata,
    table: torch.Tensor,
    norm_weight: torch.Tensor,
    stream: ResidualStream,
) -> None:
    """x = table[tokens], x norm_weight, and the sums of x^2 over blocks of 64 columns."""
    x = table[batch.tokens.long()].float()
    stream.residual.copy_(x)
    stream.normed.copy_(x * norm_weight)
    stream.squares.copy_(_block_sums(x * x).T)


def _block_sums(x: torch.Tensor) -> torch.Tensor:
    """[R, H] -> [R, blocks]: of 64 numbers neighbours are added, then neighbouring sums."""
    sums = functional.pad(x, (0, -x.shape[1] % _BLOCK))
    for _ in range(_BLOCK.bit_length() - 1):
        sums = sums[:, 0::2] + sums[:, 1::2]
    return sums
