"""The skinny product by its formula, in plain PyTorch. See the package for the contract."""

import torch

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
    """x = residual + inputs W^T, normed = x norm_weight, squares_b = sum over block b of x^2."""
    stream.write(stream.residual + inputs.float() @ weight.dense().T, norm_weight)
