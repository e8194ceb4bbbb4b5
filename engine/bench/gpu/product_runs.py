"""Our products over buffers of their own, as a step would launch them."""

from collections.abc import Callable, Sequence

import torch

from engine.bench.gpu.machine import Machine
from engine.bench.gpu.shapes import packed_tree
from engine.model.gpu.activations import Activations
from engine.model.model_config import ModelConfig
from kernels.operations import operations_for
from kernels.product.tiles import scratch_size
from kernels.residual import ResidualStream
from kernels.scratch import Scratch
from kernels.weight import Weight

_POSITIONS = 512  # of the cache that qkv writes to

ProductRun = Callable[[Weight], None]


class ProductRuns:
    """The kernels of one shape and number of rows. `activations` is what they read and write."""

    def __init__(self, machine: Machine, config: ModelConfig, weight: Weight, rows: int) -> None:
        self._machine, self._operations = machine, operations_for(machine.device)
        self.activations = Activations(config, rows, machine.dtype, machine.device)
        for held in (self.stream.normed, self.activations.attended, self.activations.mlp_hidden):
            held.normal_()
        self.stream.squares.fill_(64.0)  # of numbers of unit variance
        self._batch = packed_tree(config, rows, 64, machine).batch
        size = scratch_size(weight, rows)
        self.scratch = Scratch.allocate(*size, machine.device)
        cache = (config.num_kv_heads, _POSITIONS, config.head_dim)
        self._keys, self._values = machine.random(*cache), machine.random(*cache)
        self._cos_sin = machine.random(_POSITIONS, config.head_dim, dtype=torch.float32)
        self._ones = torch.ones(weight.num_outputs, device=machine.device)

    @property
    def stream(self) -> ResidualStream:
        """What all products read or add to."""
        return self.activations.stream

    def of(self, name: str) -> ProductRun:
        """Return what runs the product of this name."""
        operations, activations, scratch = self._operations, self.activations, self.scratch
        runs: dict[str, ProductRun] = {
            "qkv": self._qkv,
            "o": lambda weight: self._add(activations.attended.flatten(1), weight),
            "gate_up": lambda weight: operations.gate_up(
                self.stream, weight, activations.mlp_hidden, scratch
            ),
            "down": lambda weight: self._add(activations.mlp_hidden, weight),
            "head": lambda weight: operations.lm_head(
                self.stream, weight, None, activations.best, None
            ),
        }
        return runs[name]

    def us(self, name: str, weights: Sequence[Weight]) -> float:
        """Duration of a launch of the product of this name, the weights taking turns."""
        run = self.of(name)
        return self._machine.us_per_launch(
            lambda: [run(weight) for weight in weights], len(weights)
        )

    def _qkv(self, weight: Weight) -> None:
        self._operations.project_qkv(
            self.stream,
            weight,
            self._ones,
            self._cos_sin,
            self._batch,
            self.activations.queries,
            self._keys,
            self._values,
            self.scratch,
        )

    def _add(self, inputs: torch.Tensor, weight: Weight) -> None:
        self._operations.skinny_matmul(inputs, weight, self._ones, self.stream, self.scratch)
