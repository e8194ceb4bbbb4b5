"""A clock for the GPU benchmark where there is no GPU."""

import statistics
import time
from dataclasses import dataclass

from engine.bench.gpu.machine import Work


@dataclass(frozen=True, slots=True)
class HostTimer:
    """Times work that is done when it returns."""

    repeats: int = 3

    def ms(self, work: Work) -> float:
        """Median duration of `work`."""
        times = []
        for _ in range(self.repeats):
            began = time.perf_counter()
            work()
            times.append(1000 * (time.perf_counter() - began))
        return statistics.median(times)
