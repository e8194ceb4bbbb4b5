"""Gate and up by their formula, in plain PyTorch. See the package for the contract."""

import torch

from kernels.scratch import Scratch
from kernels.weight import Weight


def gate_up(
    normed: torch.Tensor,
    squares: torch.Tensor,
    weight: Weight,
    out: torch.Tensor,
    scratch: Scratch,  # noqa: ARG001 - the kernel's
    eps: float,
) -> None:
    """y = (normed W^T) / sqrt(sum_b squares_b / H + eps), out_i = silu(y_2i) y_2i+1."""
    factors = torch.rsqrt(squares.sum(dim=0) / normed.shape[1] + eps)
    y = normed.float() @ weight.dense().T * factors[:, None]
    out.copy_(torch.nn.functional.silu(y[:, 0::2]) * y[:, 1::2])
