"""The main loop of the skinny products, shared by `skinny_matmul`, `project_qkv`, `gate_up`, `lm_head`.

A program computes 64 or 128 outputs of 16 to 128 rows over one range of the inputs. The weights are
the side of 64 in the tensor cores' instruction, so it is the same for one row and for 128.
"""

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
