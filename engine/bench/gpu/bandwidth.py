"""How fast the device reads: the denominator of every ratio."""

from dataclasses import dataclass

import torch

from engine.bench.gpu.machine import Machine, Work

_NUMBERS = 1_500_000_000  # float32, 6 GB: a hundred times the largest cache
_WIDTH = 4000  # of the matrix that the numbers make
_KERNELS = 1000


@dataclass(frozen=True, slots=True)
class Bandwidth:
    """`read_gb_per_s` is the best of all ways to read everything once."""

    read_gb_per_s: float
    read_by_way_gb_per_s: dict[str, float]
    copy_gb_per_s: float  # bytes read and written
    tiny_kernel_us: float  # each of a thousand in one graph, with the gap to the next one

    def floor_ms(self, num_bytes: float) -> float:
        """Least time to read so much."""
        return num_bytes / self.read_gb_per_s / 1e6


def measure_bandwidth(machine: Machine, numbers: int = _NUMBERS) -> Bandwidth:
    """Read a large tensor of random numbers in several ways, and copy it."""
    source = torch.rand(numbers, device=machine.device)
    matrix, vector = source.view(-1, _WIDTH), torch.rand(_WIDTH, device=machine.device)
    ways: dict[str, Work] = {
        "sum": source.sum,
        "max": source.amax,
        "dot": lambda: torch.dot(source, source),
        "product": lambda: torch.mv(matrix, vector),
    }
    reads = {name: _gb_per_s(machine, way, source.nbytes) for name, way in ways.items()}
    target = torch.empty_like(source)
    copied = _gb_per_s(machine, lambda: target.copy_(source), 2 * source.nbytes)
    return Bandwidth(max(reads.values()), reads, copied, _tiny_kernel_us(machine))


def _gb_per_s(machine: Machine, work: Work, num_bytes: int) -> float:
    return num_bytes / machine.timer.ms(work) / 1e6


def _tiny_kernel_us(machine: Machine) -> float:
    number = machine.random(1)

    def kernels() -> None:
        for _ in range(_KERNELS):
            number.mul_(0.5)

    return 1000 * machine.captured_ms(kernels) / _KERNELS
