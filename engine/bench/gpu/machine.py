"""Where the figures are taken, and how long work takes there."""

import gc
import statistics
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from itertools import pairwise
from typing import Protocol, Self

import torch

from engine.model.device import Device
from engine.model.gpu.loading import require_triton

Work = Callable[[], object]
_WARM_UPS = 3


class Timer(Protocol):
    """A clock of the device."""

    def ms(self, work: Work) -> float:
        """Median duration of `work` among repeats that follow each other without a pause."""
        ...


@dataclass(frozen=True, slots=True)
class CudaTimer:
    """Times work on the current stream by events, so that the host's time does not count."""

    repeats: int = 30

    def ms(self, work: Work) -> float:
        """Median duration of `work`, a gap to the next repeat included."""
        for _ in range(_WARM_UPS):
            work()
        events = [torch.cuda.Event(enable_timing=True) for _ in range(self.repeats + 1)]
        events[0].record()
        for event in events[1:]:
            work()
            event.record()
        events[-1].synchronize()
        times: list[float] = [start.elapsed_time(end) for start, end in pairwise(events)]
        return statistics.median(times)


@dataclass(frozen=True, slots=True)
class Machine:
    """A device, the type that its steps compute in, and its clock."""

    device: torch.device
    dtype: torch.dtype
    timer: Timer

    @classmethod
    def gpu(cls, repeats: int = 30) -> Self:
        """Take the first GPU. Raises ConfigurationError where torch or Triton have none for us."""
        device = Device.choose("cuda").torch_device
        require_triton()
        return cls(device, torch.bfloat16, CudaTimer(repeats))

    @property
    def is_gpu(self) -> bool:
        """Whether work runs beside the host."""
        return self.device.type == "cuda"

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

    def captured_ms(self, work: Work) -> float:
        """Duration of `work` as one launch."""
        return self.timer.ms(self.captured(work))

    def random(self, *shape: int, dtype: torch.dtype | None = None) -> torch.Tensor:
        """Draw normal numbers: zeros would run faster than what a model holds."""
        return torch.randn(shape, device=self.device, dtype=dtype or self.dtype)

    def release(self) -> None:
        """Give memory that nobody holds back to the device, unless it has broken down."""
        if self.is_gpu:
            gc.collect()
            with suppress(RuntimeError):  # what was measured before is not to be lost with it
                torch.cuda.synchronize()
                torch.cuda.empty_cache()

    def facts(self) -> dict[str, str]:
        """What figures depend on, and when they were taken."""
        name = torch.cuda.get_device_name(self.device) if self.is_gpu else "CPU"
        packages = {package: _version(package) for package in ("torch", "triton", "transformers")}
        return {"gpu": name, "date": datetime.now(UTC).isoformat(timespec="seconds")} | packages


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "none"
