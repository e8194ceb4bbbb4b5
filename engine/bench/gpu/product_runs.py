"""Our products over buffers of their own, as a step would launch them."""

from collections.abc import Callable

import torch

from engine.bench.gpu.machine import Machine
from engine.bench.gpu.shapes import drafted_tree
from engine.model.gpu.activations import Activations
from engine.model.gpu.buffers import Inputs, StepShape
from engine.model.gpu.planting import Seedling
from engine.model.model_config import ModelConfig
from kernels.operations import operations_for
from kernels.product.tiles import scratch_size
from kernels.scratch import Scratch
from kernels.weight import Weight

_POSITIONS = 512  # of the cache that qkv writes to

Run = Callable[[Weight], None]


class ProductRuns:
    """The kernels of one shape and number of rows. `activations` is what they read and write."""

    def __init__(self, machine: Machine, config: ModelConfig, weight: Weight, rows: int) -> None:
        self._config = config
        self._operations = operations_for(machine.device)
        self.activations = Activations.allocate(config, rows, machine.dtype, machine.device)
        for held in (
            self.activations.normed,
            self.activations.attended,
            self.activations.mlp_hidden,
        ):
            held.normal_()
        self.activations.squares.fill_(64.0)  # of numbers of unit variance
        self._inputs = Inputs(
            StepShape(rows, 1), config.num_heads // config.num_kv_heads, machine.device
        )
        self._inputs.plant([Seedling(drafted_tree(rows), 0, 64)])
        self._inputs.upload()
        size = scratch_size(weight.num_outputs, weight.num_inputs, rows, weight.quantization)
        self.scratch = Scratch.allocate(*size, machine.device)
        cache = (config.num_kv_heads, _POSITIONS, config.head_dim)
        self._keys, self._values = machine.random(*cache), machine.random(*cache)
        self._cos_sin = machine.random(_POSITIONS, config.head_dim, dtype=torch.float32)
        self._ones = torch.ones(weight.num_outputs, device=machine.device)

    def of(self, name: str) -> Run:
        """Return what runs the product of this name."""
        runs: dict[str, Run] = {
            "qkv": self._qkv,
            "o": lambda weight: self._add(self.activations.attended.flatten(1), weight),
            "gate_up": self._gate_up,
            "down": lambda weight: self._add(self.activations.mlp_hidden, weight),
            "head": self._head,
        }
        return runs[name]

    def _qkv(self, weight: Weight) -> None:
        activations = self.activations
        self._operations.project_qkv(
            activations.normed,
            activations.squares,
            weight,
            self._ones,
            self._cos_sin,
            self._inputs.batch,
            activations.queries,
            self._keys,
            self._values,
            self.scratch,
            self._config.rms_norm_eps,
        )

    def _add(self, inputs: torch.Tensor, weight: Weight) -> None:
        activations = self.activations
        self._operations.skinny_matmul(
            inputs,
            weight,
            activations.residual,
            self._ones,
            activations.normed,
            activations.squares,
            self.scratch,
        )

    def _gate_up(self, weight: Weight) -> None:
        activations, eps = self.activations, self._config.rms_norm_eps
        self._operations.gate_up(
            activations.normed,
            activations.squares,
            weight,
            activations.mlp_hidden,
            self.scratch,
            eps,
        )

    def _head(self, weight: Weight) -> None:
        activations, eps = self.activations, self._config.rms_norm_eps
        self._operations.lm_head(
            activations.normed, activations.squares, weight, None, activations.best, eps, None
        )
