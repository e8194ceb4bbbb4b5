"""The skinny products in PyTorch: in the type that the inputs are in, as a device does it best."""

import torch

from kernels.residual import ResidualStream
from kernels.weight import Weight


def product(x: torch.Tensor, weight: Weight) -> torch.Tensor:
    """x W^T in the type of x, float32 [R, N]."""
    held = weight.values if weight.quantization == "float" else weight.dense()
    return (x @ held.to(x.dtype).T).float()


def projected(stream: ResidualStream, weight: Weight) -> torch.Tensor:
    """(normed W^T) / sqrt(sum_b squares_b / H + eps), float32 [R, N]."""
    factors = torch.rsqrt(stream.squares.sum(dim=0) / stream.normed.shape[1] + stream.eps)
    return product(stream.normed, weight) * factors[:, None]
