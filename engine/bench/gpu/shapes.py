"""Models of real shapes with random weights, which do not change the cost of a step."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import torch

from engine.bench.gpu.machine import Machine
from engine.errors import ConfigurationError
from engine.model.gpu.launches import can_start_early
from engine.model.gpu.loading import place_qwen2
from engine.model.gpu.qwen2 import GpuQwen2
from engine.model.loading.float_packing import pack_own_forms
from engine.model.model_config import QWEN_SHAPES, ModelConfig
from engine.progress import Progress
from kernels.operations import Operations, operations_for
from kernels.weight import Quantization

_DEVIATION = 0.02  # standard deviation of the weights, as such models are initialised
SHAPES = {name: QWEN_SHAPES[name] for name in ("0.5b", "1.5b", "7b", "32b")}


@dataclass(frozen=True, slots=True)
class Shape:
    """A model's shape, its name, and the quantization of its weights."""

    name: str
    config: ModelConfig
    quantization: Quantization = "float"

    @property
    def full_name(self) -> str:
        """Return the name for reports: `7b bf16`."""
        return f"{self.name} {'bf16' if self.quantization == 'float' else self.quantization}"


def parse_shapes(text: str, quantization: Quantization) -> tuple[Shape, ...]:
    """Parse comma-separated names. Raises ConfigurationError for an unknown one."""
    names = dict.fromkeys(name.strip().lower() for name in text.split(","))
    for name in names:
        if name not in SHAPES:
            raise ConfigurationError(f"shape {name!r} is none of {', '.join(SHAPES)}")
    return tuple(Shape(name, SHAPES[name], quantization) for name in names)


class RandomTensors(Mapping[str, torch.Tensor]):
    """The tensors of `float_packing`, each drawn on the device on access."""

    def __init__(self, config: ModelConfig, machine: Machine) -> None:
        self._machine = machine
        self._generator = torch.Generator(machine.device).manual_seed(0)
        shapes = dict(config.shapes())

        def read(name: str) -> torch.Tensor:
            return torch.empty(shapes[name], device="meta")

        self._sizes = {name: one.shape for name, one in pack_own_forms(config, read)}

    def __getitem__(self, name: str) -> torch.Tensor:
        size, machine = self._sizes[name], self._machine
        if name.endswith(".norm"):
            return torch.ones(size, device=machine.device)
        drawn = torch.empty(size, dtype=machine.dtype, device=machine.device)
        return drawn.normal_(0.0, _DEVIATION, generator=self._generator)

    def __iter__(self) -> Iterator[str]:
        return iter(self._sizes)

    def __len__(self) -> int:
        return len(self._sizes)


def random_model(
    shape: Shape, positions: int, machine: Machine, operations: Operations | None = None
) -> GpuQwen2:
    """Make a model whose cache has room for `positions` tokens and holds random numbers."""
    model = place_qwen2(
        shape.config,
        RandomTensors(shape.config, machine),
        shape.quantization,
        positions,
        machine.device,
        Progress(),
        machine.dtype,
        operations,
    )
    for held in (model.arena.keys, model.arena.values):
        held.normal_()
    return model


def trusted_model(shape: Shape, positions: int, machine: Machine) -> GpuQwen2:
    """Make a model that runs as if its check had passed: kernels may start early."""
    operations = operations_for(machine.device, programmatic=can_start_early(machine.device))
    return random_model(shape, positions, machine, operations)
