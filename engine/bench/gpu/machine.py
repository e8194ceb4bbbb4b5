"""Where the figures are taken, how long work takes there, and how fast memory is read."""

import gc
import statistics
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from itertools import pairwise
from typing import Self

import torch

from engine.errors import ConfigurationError
from engine.model.device import (
    DeviceChoice,
    free_bytes,
    name_of,
)
from engine.model.gpu.launches import can_start_early

Work = Callable[[], object]
Timer = Callable[[Work], float]  # ms: median of repeats that follow each other without a pause
_WARM_UPS = 3
_WIDTH = 4000  # of the matrix that the numbers make
_REPEATS, _HOST_REPEATS = 30, 5
_BANDWIDTH_PART = 0.2  # of a GPU's free memory, for each of two tensors


def cuda_ms(work: Work, repeats: int = _REPEATS) -> float:
    """Time work on the current stream by events, so that the host's time does not count.

    A gap to the next repeat is included.
    """
    for _ in range(_WARM_UPS):
        work()
    events = [torch.cuda.Event(enable_timing=True) for _ in range(repeats + 1)]
    events[0].record()
    for event in events[1:]:
        work()
        event.record()
    events[-1].synchronize()
    times: list[float] = [start.elapsed_time(end) for start, end in pairwise(events)]
    return statistics.median(times)


def host_ms(work: Work) -> float:
    """Duration of what waits for its own end, by the host's clock: the fastest of a few."""
    times = []
    for _ in range(_HOST_REPEATS):
        began = time.perf_counter()
        work()
        times.append(1000 * (time.perf_counter() - began))
    return min(times)


@dataclass(frozen=True, slots=True)
class Machine:
    """A device, the type that its steps compute in, its clock, and whether our kernels run there."""

    device: torch.device
    dtype: torch.dtype
    ms: Timer
    has_kernels: bool = True

    @classmethod
    def gpu(cls) -> Self:
        """Take the first GPU. Raises ConfigurationError where torch or Triton have none for us."""
        choice = DeviceChoice.of("cuda")
        if choice.kernel_lack:
            raise ConfigurationError(f"device {choice.device}: {choice.kernel_lack}")
        return cls(choice.device, torch.bfloat16, cuda_ms)

    @classmethod
    def without_kernels(cls) -> Self | None:
        """Take what `auto` takes where our kernels do not run; None for any other device."""
        choice = DeviceChoice.of("auto")
        if choice.is_cpu or choice.has_kernels:
            return None
        return cls(choice.device, torch.bfloat16, host_ms, has_kernels=False)

    @property
    def is_gpu(self) -> bool:
        """Whether work runs beside the host."""
        return self.device.type == "cuda"

    @property
    def starts_early(self) -> bool:
        """Whether kernels may start before the one ahead has ended; a CPU stands for such a GPU."""
        return not self.is_gpu or can_start_early(self.device)

    def fitting(self, numbers: int) -> int:
        """So many float32 that two copies leave most of a GPU's free memory, in whole rows."""
        if not self.is_gpu:
            return numbers
        most = int(_BANDWIDTH_PART * free_bytes(self.device) / 4)
        return min(numbers, most) // _WIDTH * _WIDTH

    def captured(self, work: Work) -> Work:
        """Return `work` as one launch, without the host's time between its kernels."""
        if not self.is_gpu:
            return work
        work()  # compiles what is not compiled
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        # A capture that fails leaves its own stream behind as the current one.
        with torch.cuda.stream(torch.cuda.current_stream()), torch.cuda.graph(graph):
            work()
        return graph.replay

    def us_per_launch(self, work: Work, launches: int) -> float:
        """Duration of one of the launches that `work` consists of."""
        return 1000 * self.ms(self.captured(work)) / launches

    def release(self) -> None:
        """Give memory that nobody holds back to the device, unless it has broken down."""
        if self.is_gpu:
            gc.collect()
            with suppress(RuntimeError):  # what was measured before is not to be lost with it
                torch.cuda.synchronize()
                torch.cuda.empty_cache()

    def facts(self) -> dict[str, str]:
        """What figures depend on, and when they were taken."""
        name = "CPU" if self.device.type == "cpu" else name_of(self.device)
        packages = {package: _version(package) for package in ("torch", "triton", "transformers")}
        return {"gpu": name, "date": datetime.now(UTC).isoformat(timespec="seconds")} | packages


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "none"


@dataclass(frozen=True, slots=True)
class Bandwidth:
    """`read_gb_per_s` is the best of several ways to read everything once."""

    read_gb_per_s: float


def measure_bandwidth(machine: Machine, numbers: int) -> Bandwidth:
    """Read a large tensor of random numbers in several ways."""
    source = torch.rand(machine.fitting(numbers), device=machine.device)
    matrix, vector = source.view(-1, _WIDTH), torch.rand(_WIDTH, device=machine.device)
    ways: tuple[Work, ...] = (source.sum, source.amax, lambda: torch.mv(matrix, vector))
    return Bandwidth(source.nbytes / min(map(machine.ms, ways)) / 1e6)
