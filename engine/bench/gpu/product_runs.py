"""Our products over buffers of their own, as a step would launch them."""

from collections.abc import Callable

import torch

from engine.bench.gpu.machine import Machine
from engine.bench.gpu.shapes import drafted_tree
from engine.model.gpu.buffers import Flow, Inputs, StepShape
from engine.model.gpu.planting import Seedling
from engine.model.model_config import ModelConfig
from kernels.operations import operations_for
from kernels.product.tiles import scratch_size
from kernels.scratch import Scratch
from kernels.weight import Weight

_POSITIONS = 512  # of the cache that qkv writes to

Run = Callable[[Weight], None]


class ProductRuns:
    """The kernels of one shape and number of rows. `flow` is what they read and write."""

    def __init__(self, machine: Machine, config: ModelConfig, weight: Weight, rows: int) -> None:
        self._config = config
        self._operations = operations_for(machine.device)
        self.flow = Flow.allocate(config, rows, machine.dtype, machine.device)
        for held in (self.flow.normed, self.flow.attended, self.flow.joined):
            held.normal_()
        self.flow.squares.fill_(64.0)  # of numbers of unit variance
        self._inputs = Inputs(
            StepShape(rows, 1), config.num_heads // config.num_kv_heads, machine.device
        )
        self._inputs.plant([Seedling(drafted_tree(rows), 0, 64)])
        self._inputs.upload()
        size = scratch_size(weight.num_outputs, weight.num_inputs, rows, weight.form)
        self.scratch = Scratch.allocate(*size, machine.device)
        cache = (config.num_kv_heads, _POSITIONS, config.head_dim)
        self._keys, self._values = machine.random(*cache), machine.random(*cache)
        self._turns = machine.random(_POSITIONS, config.head_dim, dtype=torch.float32)
        self._ones = torch.ones(weight.num_outputs, device=machine.device)

    def of(self, name: str) -> Run:
        """Return what runs the product of this name."""
        runs: dict[str, Run] = {
            "qkv": self._qkv,
            "o": lambda weight: self._add(self.flow.attended.flatten(1), weight),
            "gate_up": self._gate_up,
            "down": lambda weight: self._add(self.flow.joined, weight),
            "head": self._head,
        }
        return runs[name]

    def _qkv(self, weight: Weight) -> None:
        flow = self.flow
        self._operations.project_qkv(
            flow.normed,
            flow.squares,
            weight,
            self._ones,
            self._turns,
            self._inputs.forest,
            flow.queries,
            self._keys,
            self._values,
            self.scratch,
            self._config.rms_norm_eps,
        )

    def _add(self, inputs: torch.Tensor, weight: Weight) -> None:
        flow = self.flow
        self._operations.skinny_matmul(
            inputs, weight, flow.residual, self._ones, flow.normed, flow.squares, self.scratch
        )

    def _gate_up(self, weight: Weight) -> None:
        flow, eps = self.flow, self._config.rms_norm_eps
        self._operations.gate_up(flow.normed, flow.squares, weight, flow.joined, self.scratch, eps)

    def _head(self, weight: Weight) -> None:
        flow, eps = self.flow, self._config.rms_norm_eps
        self._operations.lm_head(flow.normed, flow.squares, weight, None, flow.best, eps, None)
