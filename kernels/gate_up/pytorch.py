"""Gate and up in PyTorch. See the package for the contract."""

import torch

from kernels.product.pytorch import projected
from kernels.residual import ResidualStream
from kernels.scratch import Scratch
from kernels.weight import Weight


def gate_up(
    stream: ResidualStream,
    weight: Weight,
    out: torch.Tensor,
    scratch: Scratch,  # noqa: ARG001 - the kernel's
) -> None:
    """out_i = silu(y_2i) y_2i+1."""
    y = projected(stream, weight)
    out.copy_(torch.nn.functional.silu(y[:, 0::2]) * y[:, 1::2])
