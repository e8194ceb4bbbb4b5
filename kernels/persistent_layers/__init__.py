"""All layers of a step as one launch, whose programs stay and meet between the phases.

Contract of `PersistentLayers.run(flow, cos_sin, batch, scratch)`: to the bit what six launches a
layer give, one after the other:

    project_qkv, attend, combine, skinny_matmul (o), gate_up, skinny_matmul (down)

A phase is one of them. Its tiles are dealt to the programs, each of which has a multiprocessor to
itself; they are the functions that the six kernels run, cut the same way. Before the programs wait
for each other, each asks the cache for the first weights of its next product.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch

from kernels.batch import BatchMetadata
from kernels.residual import ResidualStream
from kernels.scratch import Scratch
from kernels.weight import Weight

PHASES = ("project_qkv", "attend", "combine", "o", "gate_up", "down")
MOST_ROWS = 16  # of one tile: steps of so many rows share a binary


@dataclass(frozen=True, slots=True)
class LayerTensors:
    """What one layer reads, and its `keys` and `values` [kv heads, positions, d].

    `next_norm_weight` is that of the next layer, or of the head.
    """

    qkv: Weight
    qkv_bias: torch.Tensor
    o: Weight
    gate_up_norm_weight: torch.Tensor
    gate_up: Weight
    down: Weight
    next_norm_weight: torch.Tensor
    keys: torch.Tensor
    values: torch.Tensor

    @property
    def products(self) -> tuple[Weight, Weight, Weight, Weight]:
        """The four matrices."""
        return self.qkv, self.o, self.gate_up, self.down

    @property
    def shapes(self) -> tuple[tuple[str, int, int], ...]:
        """Of each product, what a kernel is compiled for."""
        return tuple((one.quantization, one.num_outputs, one.num_inputs) for one in self.products)


@dataclass(frozen=True, slots=True)
class Flow:
    """What flows between the phases of R rows: `queries`, `attended` [R, heads, d], `hidden` [R, I]."""

    stream: ResidualStream
    queries: torch.Tensor
    attended: torch.Tensor
    hidden: torch.Tensor

    @property
    def rows(self) -> int:
        """R."""
        return self.queries.shape[0]


class LayersLaunch(Protocol):
    """All layers of a step, ready to be launched."""

    def takes(self, rows: int) -> bool:
        """Whether it is for steps of so many rows."""
        ...

    def run(
        self, flow: Flow, cos_sin: torch.Tensor, batch: BatchMetadata, scratch: Scratch
    ) -> None:
        """Write what the operations of all layers would, to the bit."""
        ...


def are_alike(layers: Sequence[LayerTensors]) -> bool:
    """Whether one launch can run them: a loop over the layers is compiled for one kind."""
    return len({layer.shapes for layer in layers}) == 1
