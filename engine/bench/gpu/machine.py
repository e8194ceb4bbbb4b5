"""The measured machine: its clock and its memory bandwidth."""

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
from engine.model.accelerators import free_bytes
from engine.model.device import DeviceChoice
from engine.model.gpu.selfcheck.key import device_name, triton_version

Work = Callable[[], object]
Timer = Callable[[Work], float]  # returns ms
_WARM_UPS = 3  # untimed runs, of which the first may compile a kernel
_WIDTH = 4000  # columns of the matrix that is read
_REPEATS, _HOST_REPEATS = 30, 5
_BANDWIDTH_PART = 0.4  # most of a GPU's free memory that the measurement takes


def cuda_ms(work: Work, repeats: int = _REPEATS) -> float:
    """Return the median ms of work on the current stream by events, with gaps between repeats."""
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
    """Return the fastest of a few runs by the host's clock; the work must wait for its end."""
    return 1000 * min(timeit.repeat(work, number=1, repeat=_HOST_REPEATS))


@dataclass(slots=True)
class Machine:
    """A device, its compute type, its clock, and whether our kernels run there."""

    device: torch.device
    dtype: torch.dtype
    ms: Timer
    has_kernels: bool = True
    gb_per_s: float = nan  # memory bandwidth once measured: the best of several ways to read

    @classmethod
    def gpu(cls) -> Self:
        """Return the first GPU. Raises ConfigurationError if torch or Triton cannot use it."""
        choice = DeviceChoice.of("cuda")
        if choice.kernel_lack:
            raise ConfigurationError(f"device {choice.device}: {choice.kernel_lack}")
        return cls(torch.device(choice.device), torch.bfloat16, cuda_ms)

    @classmethod
    def without_kernels(cls) -> Self | None:
        """Return the device that `auto` picks, if it is a GPU without our kernels, else None."""
        choice = DeviceChoice.of("auto")
        if choice.is_cpu or choice.has_kernels:
            return None
        return cls(torch.device(choice.device), torch.bfloat16, host_ms, has_kernels=False)

    @property
    def is_gpu(self) -> bool:
        """Whether work runs asynchronously to the host."""
        return self.device.type == "cuda"

    def floor_ms(self, num_bytes: float) -> float:
        """Return the least time to read so many bytes; NaN if the bandwidth is unknown."""
        return num_bytes / self.gb_per_s / 1e6

    def release(self) -> None:
        """Return free memory to the device, ignoring errors of a lost device."""
        if self.is_gpu:
            gc.collect()
            with suppress(RuntimeError):  # keep the figures so far
                torch.cuda.synchronize()
                torch.cuda.empty_cache()

    def facts(self) -> dict[str, str]:
        """Return the versions and hardware that figures depend on, and the date."""
        return {
            "gpu": device_name(self.device),
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
            "torch": str(torch.__version__),
            "triton": triton_version(),
        }


def measure_bandwidth(machine: Machine, numbers: int) -> float:
    """Read so many random float32, or as many as the GPU has room for; return GB per second."""
    if machine.is_gpu:
        numbers = min(numbers, int(_BANDWIDTH_PART * free_bytes(machine.device) / 4))
    matrix = torch.rand(numbers // _WIDTH, _WIDTH, device=machine.device)
    vector = torch.rand(_WIDTH, device=machine.device)
    ways: tuple[Work, ...] = (matrix.sum, matrix.amax, lambda: torch.mv(matrix, vector))
    return matrix.nbytes / min(map(machine.ms, ways)) / 1e6
