"""Normalises, projects to gate and up, and joins them: SwiGLU.

Contract of `gate_up(stream, weight, out, scratch)`, here in PyTorch and in `triton_kernel`:

    y = (normed W^T) / sqrt(sum_b squares_b / H + eps)
    out_ri = silu(y_r,2i) y_r,2i+1,        silu(z) = z / (1 + exp(-z))

- `stream` is a `ResidualStream` of R rows.
- `weight` has 2 I outputs, of gate and up in turn. Writes `out` [R, I] in the type of its `normed`.
"""

import torch

from kernels.product import projected
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
