"""Where a step's time goes: gaps between kernels, and each operation alone."""

from dataclasses import dataclass
from functools import partial

import torch

from engine.bench.gpu.machine import Machine
from engine.bench.gpu.operation_times import measure_operations
from engine.bench.gpu.run import GpuBench, Section
from engine.bench.gpu.steps import measure_steps
from kernels.operations import operations_for
from kernels.residual import ResidualStream
from kernels.weight import Weight

_TINY_KERNELS = 1000


@dataclass(frozen=True, slots=True)
class Gap:
    """A kernel of one row in a graph of a thousand, with the gap to the next one."""

    is_programmatic: bool
    us: float


class GpuProfile(GpuBench):
    """The profile's sections in place of the benchmark's, the most telling first."""

    def sections(self) -> list[Section]:
        """Gaps and steps, then the operations of each shape."""
        shapes, cases = self._inputs.shapes, self._sizes.kernel_cases
        return [
            self._bandwidth,
            Section("gaps", lambda lab: measure_gaps(lab.machine)),
            Section("steps", partial(measure_steps, shapes=shapes, cases=cases)),
            *(
                Section(
                    f"operations_{shape.name}",
                    partial(measure_operations, shape=shape, cases=cases),
                )
                for shape in shapes
            ),
        ]


def measure_gaps(machine: Machine) -> tuple[Gap, ...]:
    """Look one token up over and over, each kernel started behind the one before or while it ends."""
    width, device = 64, machine.device
    tokens = torch.zeros(1, dtype=torch.int32, device=device)
    table, norm_weight = machine.random(1, width), torch.ones(width, device=device)
    embedding = Weight("float", table, None)
    residual, squares = torch.zeros(1, width, device=device), torch.zeros(1, 1, device=device)
    stream = ResidualStream(residual, torch.zeros_like(table), squares, eps=0.0)

    def gap(*, is_programmatic: bool) -> Gap:
        embed_rows = operations_for(device, programmatic=is_programmatic).embed_rows

        def work() -> None:
            for _ in range(_TINY_KERNELS):
                embed_rows(tokens, embedding, norm_weight, stream)

        return Gap(is_programmatic, machine.us_per_launch(work, _TINY_KERNELS))

    early = (gap(is_programmatic=True),) if machine.starts_early else ()
    return gap(is_programmatic=False), *early
