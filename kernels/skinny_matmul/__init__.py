"""A matrix product for few rows, added to the residual stream, with what the next norm needs.

Contract of `skinny_matmul(inputs, weight, norm_weight, stream, scratch)`, here in PyTorch and in
`triton_kernel`:

    x = residual + inputs W^T

- `inputs` [R, K] bfloat16; `weight` a `Weight` of N outputs, K inputs; `norm_weight` float32 [N].
- Writes x and what follows from it to `stream`, a `ResidualStream`: `residual` in place.
- `scratch` as `tiles.scratch_size` says, here and in the other products that take one.
- All tensors are contiguous, in all four products, and R >= 1. A program takes up to 128 rows.

A row's bits depend on that row alone: N and K determine the tile depth, the splits and their order.
"""

import torch

from kernels.product import product
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
