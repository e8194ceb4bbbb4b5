"""Where the figures are taken, how long work takes there, and how fast memory is read."""

import gc
import statistics
import timeit
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from math import nan
from typing import Self

import torch

from engine.errors import ConfigurationError
from engine.model.device import DeviceChoice, free_bytes
from engine.model.gpu.launches import can_start_early
from engine.model.gpu.selfcheck.key import device_name, triton_version

Work = Callable[[], object]
Timer = Callable[[Work], float]  # ms: median of repeats that follow each other without a pause
_WARM_UPS = 3
_WIDTH = 4000  # of the matrix that is read
_REPEATS, _HOST_REPEATS = 30, 5
_BANDWIDTH_PART = 0.4  # of a GPU's free memory


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
    return 1000 * min(timeit.repeat(work, number=1, repeat=_HOST_REPEATS))


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

    def captured_ms(self, work: Work) -> float:
        """Time work as one launch, without the host's time between its kernels."""
        if not self.is_gpu:
            return self.ms(work)
        work()  # compiles what is not compiled
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        # A capture that fails leaves its own stream behind as the current one.
        with torch.cuda.stream(torch.cuda.current_stream()), torch.cuda.graph(graph):
            work()
        return self.ms(graph.replay)

    def release(self) -> None:
        """Give free memory back to the device, unless that has broken down."""
        if self.is_gpu:
            gc.collect()
            with suppress(RuntimeError):  # the figures so far are not lost with it
                torch.cuda.synchronize()
                torch.cuda.empty_cache()

    def facts(self) -> dict[str, str]:
        """What figures depend on, and when they were taken."""
        return {
            "gpu": device_name(self.device),
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
            "torch": str(torch.__version__),
            "triton": triton_version(),
        }


@dataclass(frozen=True, slots=True)
class Bandwidth:
    """`read_gb_per_s` is the best of several ways to read everything once; NaN is unknown."""

    read_gb_per_s: float = nan


def measure_bandwidth(machine: Machine, numbers: int) -> Bandwidth:
    """Read so many random float32, or as many as a GPU has room for, in several ways."""
    if machine.is_gpu:
        numbers = min(numbers, int(_BANDWIDTH_PART * free_bytes(machine.device) / 4))
    matrix = torch.rand(numbers // _WIDTH, _WIDTH, device=machine.device)
    vector = torch.rand(_WIDTH, device=machine.device)
    ways: tuple[Work, ...] = (matrix.sum, matrix.amax, lambda: torch.mv(matrix, vector))
    return Bandwidth(matrix.nbytes / min(map(machine.ms, ways)) / 1e6)
