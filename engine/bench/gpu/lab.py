"""The equipment of the benchmark's sections."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from engine.bench.gpu.machine import Bandwidth, Machine
from engine.bench.gpu.shapes import Shape, random_model
from engine.model.gpu.qwen2 import GpuQwen2
from engine.progress import Progress
from kernels.operations import operations_for


@dataclass(slots=True)
class Lab:
    """A machine, and its bandwidth once measured."""

    machine: Machine
    progress: Progress
    bandwidth: Bandwidth = field(default_factory=Bandwidth)

    def floor_ms(self, num_bytes: float) -> float:
        """Return the least time to read so many bytes; NaN if the bandwidth is unknown."""
        return num_bytes / self.bandwidth.read_gb_per_s / 1e6

    def model(self, shape: Shape, positions: int) -> GpuQwen2:
        """Return a random model that runs as if its check had passed: kernels may start early."""
        operations = operations_for(self.machine.device, programmatic=self.machine.starts_early)
        return random_model(shape, positions, self.machine, operations)


Section = Callable[
    [Lab], Iterable[object]
]  # yields data classes, each a row of the section's table
