"""What a section is measured with, and its cases: what was measured, and what could not be."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from engine.bench.gpu.machine import Bandwidth, Machine
from engine.bench.gpu.shapes import Shape, random_model
from engine.errors import ForegramError
from engine.model.gpu.qwen2 import GpuQwen2
from engine.progress import Progress, shown
from kernels.operations import operations_for

_MOST_CHARS = 300


def sentence(error: Exception) -> str:
    """One line that says what went wrong; our own errors are sentences already."""
    text = " ".join(str(error).split())[:_MOST_CHARS]
    return text if isinstance(error, ForegramError) else f"{type(error).__name__}: {text}"


@dataclass(frozen=True, slots=True)
class Cases:
    """Data classes of one kind, a row of the section's table each, and sentences about them."""

    cases: tuple[Any, ...]
    notes: tuple[str, ...] = ()


@dataclass(slots=True)
class Lab:
    """A machine and its bandwidth, once that is measured."""

    machine: Machine
    progress: Progress
    bandwidth: Bandwidth | None = None

    def floor_ms(self, num_bytes: float) -> float:
        """Least time to read so much. Raises ValueError where the bandwidth is unknown."""
        if self.bandwidth is None:
            raise ValueError("the bandwidth was not measured")
        return num_bytes / self.bandwidth.read_gb_per_s / 1e6

    def model(self, shape: Shape, positions: int) -> GpuQwen2:
        """A random model that runs as one whose check has found nothing: kernels may start early."""
        operations = operations_for(self.machine.device, programmatic=self.machine.starts_early)
        return random_model(shape, positions, self.machine, operations)

    def cases(
        self, title: str, total: int, measures: Iterable[tuple[str, Iterable[object]]]
    ) -> Cases:
        """Collect from named generators in turn; one that fails keeps what it found, and a note."""
        found, notes = list[object](), list[str]()
        with shown(self.progress, title, total):
            for name, measured in measures:
                try:
                    for case in measured:
                        found.append(case)
                        self.progress.advance(1)
                except Exception as error:  # noqa: BLE001 - kernels and drivers fail in all ways
                    notes.append(f"{name}: {sentence(error)}")
                self.machine.release()
        return Cases(tuple(found), tuple(notes))
