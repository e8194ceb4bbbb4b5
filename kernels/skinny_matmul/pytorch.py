"""The skinny product in PyTorch. See the package for the contract."""

import torch

from kernels.product.pytorch import product
from kernels.residual import ResidualStream
from kernels.scratch import Scratch
from kernels.weight import Weight


def skinny_matmul(
    inputs: torch.Tensor,
    weight: Weight,
    norm_weight: torch.Tensor,
    stream: ResidualStream,
    scratch: Scratch,  # noqa: ARG001 - the kernel's
) -> None:
    """x = residual + inputs W^T, and what follows from it."""
    stream.write(stream.residual + product(inputs, weight), norm_weight)
