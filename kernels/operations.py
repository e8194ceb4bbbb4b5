"""The operations of a step, chosen once per device: Triton kernels, or PyTorch."""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import partial
from importlib import import_module
from typing import Any

import torch
from torch import Tensor

from kernels.acceptance_walk import AcceptanceOutput, acceptance_walk
from kernels.batch import BatchMetadata
from kernels.batch_attention import batch_attention
from kernels.embed_rows import embed_rows
from kernels.gate_up import gate_up
from kernels.kv_commit import kv_commit
from kernels.lm_head import Best, SamplingNoise, lm_head
from kernels.project_qkv import project_qkv
from kernels.residual import ResidualStream
from kernels.scratch import Scratch
from kernels.skinny_matmul import skinny_matmul
from kernels.weight import Weight


@dataclass(frozen=True, slots=True)
class Operations:
    """One implementation of each contract; each folder says what its arguments are.

    `asks_host`: they read a batch's `step_rows`, so steps differ on the device and none is captured.
    """

    embed_rows: Callable[[Tensor, Weight, Tensor, ResidualStream], None]
    project_qkv: Callable[
        [ResidualStream, Weight, Tensor, Tensor, BatchMetadata, Tensor, Tensor, Tensor, Scratch],
        None,
    ]
    batch_attention: Callable[[Tensor, Tensor, Tensor, BatchMetadata, Scratch, Tensor], None]
    skinny_matmul: Callable[[Tensor, Weight, Tensor, ResidualStream, Scratch], None]
    gate_up: Callable[[ResidualStream, Weight, Tensor, Scratch], None]
    lm_head: Callable[[ResidualStream, Weight, SamplingNoise | None, Best, Tensor | None], None]
    acceptance_walk: Callable[[Best, BatchMetadata, AcceptanceOutput], None]
    kv_commit: Callable[[Tensor, Tensor, BatchMetadata], None]
    asks_host: bool = False


# Runs on any device. A row has the same bits beside any other rows if the device's own products, sums
# and maxima treat rows alike at one shape, which a check on the device finds out.
PORTABLE = Operations(
    embed_rows=embed_rows, project_qkv=project_qkv, batch_attention=batch_attention,
    skinny_matmul=skinny_matmul, gate_up=gate_up, lm_head=lm_head,
    acceptance_walk=acceptance_walk, kv_commit=kv_commit, asks_host=True,
)  # fmt: skip


OPERATIONS = tuple(one.name for one in fields(Operations) if one.name != "asks_host")


def operations_for(device: torch.device, *, programmatic: bool = False) -> Operations:
    """Return the kernels of a GPU; on a CPU, which stands for one in tests, PyTorch in their place.

    `programmatic` lets a GPU start a kernel before the one ahead of it has ended.
    """
    if device.type != "cuda":
        return replace(PORTABLE, asks_host=False)
    kernels: dict[str, Any] = {}
    for name in OPERATIONS:  # by name: Triton is there on machines with a GPU only
        kernel = getattr(import_module(f"kernels.{name}.triton_kernel"), name)
        # The commit stands behind a copy, which lets nothing start early.
        early = {} if name == "kv_commit" else {"programmatic": programmatic}
        kernels[name] = partial(kernel, **early)
    return Operations(**kernels)
