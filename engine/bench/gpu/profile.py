"""Where a step's time goes: gaps between kernels, each kernel alone, and other cuts of the products."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from engine.bench.gpu.attention import AttentionCase
from engine.bench.gpu.cases import Cases
from engine.bench.gpu.compiling import compile_all, jobs_of
from engine.bench.gpu.machine import Bandwidth, Machine, measure_bandwidth
from engine.bench.gpu.product_cuts import CutTime, measure_cuts
from engine.bench.gpu.product_peers import ProductPeer
from engine.bench.gpu.products import ProductTime, measure_products, us_per_launch
from engine.bench.gpu.run import GpuBench, Section
from engine.bench.gpu.shapes import Shape, quantization_name
from engine.bench.gpu.steps import StepPlan, measure_programmatic, measure_steps
from engine.model.gpu.buffers import Inputs, StepShape
from kernels.operations import operations_for
from kernels.residual import ResidualStream
from kernels.weight import QUANTIZATIONS, Quantization

_ROWS = (1, 8, 32, 128)
_TINY_KERNELS = 1000


@dataclass(frozen=True, slots=True)
class Gap:
    """A kernel of one row in a graph of a thousand, with the gap to the next one."""

    is_programmatic: bool
    us: float


@dataclass(frozen=True, slots=True)
class AttentionParts:
    """The two kernels of attention; the share is the first one's, which reads keys and values."""

    shape: str
    rows: int
    context: int
    attend_us: float
    combine_us: float
    share_of_bandwidth: float


class GpuProfile(GpuBench):
    """The profile's sections in place of the benchmark's, the most telling first."""

    def sections(self) -> list[Section]:
        """All but the bandwidth are left out where the time is up."""
        machine, progress = self._machine, self._progress
        shapes, last = self._inputs.shapes, self._inputs.shapes[-1]
        cases = tuple((rows, self._context) for rows in self._rows)
        plans = [StepPlan(shape, "float", cases) for shape in shapes]
        measures: dict[str, Callable[[], Any]] = {
            "bandwidth": lambda: measure_bandwidth(machine, self._sizes.numbers),
            "gaps": lambda: measure_gaps(machine),
            "steps": lambda: measure_steps(machine, self.bandwidth, plans, progress),
        }
        for shape in shapes:
            measures |= {
                f"products_{shape.name}_bf16": partial(self._products, shape, "float"),
                f"attention_{shape.name}": partial(self._attention, shape),
                f"programmatic_{shape.name}": partial(measure_programmatic, machine, shape, cases),
            }
        for quantization in QUANTIZATIONS[1:]:
            measures[f"products_{last.name}_{quantization}"] = partial(
                self._products, last, quantization
            )
        for quantization in QUANTIZATIONS:
            measures[f"cuts_{last.name}_{quantization_name(quantization)}"] = partial(
                self._cuts, last, quantization
            )
        return self._compilation() + [
            Section(name, measure, is_optional=name != "bandwidth")
            for name, measure in measures.items()
        ]

    @property
    def _rows(self) -> list[int]:
        return [rows for rows in _ROWS if rows in self._sizes.rows]

    @property
    def _context(self) -> int:
        return self._sizes.contexts[1]

    def _compilation(self) -> list[Section]:
        if not self._machine.is_gpu:
            return []
        shapes = self._inputs.shapes
        jobs = jobs_of(shapes, "float", _ROWS)
        jobs += jobs_of(shapes, "float", _ROWS, is_programmatic=True)
        for quantization in QUANTIZATIONS[1:]:
            jobs += jobs_of(shapes[-1:], quantization, _ROWS)
        return [Section("compilation", lambda: compile_all(jobs, self._progress))]

    def _products(self, shape: Shape, quantization: Quantization) -> Cases[ProductTime]:
        no_peers: dict[Quantization, dict[str, ProductPeer]] = {quantization: {}}
        return measure_products(
            self._machine, self.bandwidth, [shape], self._rows, self._progress, no_peers
        )

    def _attention(self, shape: Shape) -> tuple[AttentionParts, ...]:
        return tuple(
            measure_attention_parts(self._machine, self.bandwidth, shape, rows, self._context)
            for rows in self._rows
        )

    def _cuts(self, shape: Shape, quantization: Quantization) -> Cases[CutTime]:
        return measure_cuts(self._machine, self.bandwidth, shape, quantization, self._progress)


def measure_gaps(machine: Machine) -> tuple[Gap, ...]:
    """Look one token up over and over, each kernel started behind the one before or while it ends."""
    width, device = 64, machine.device
    batch = Inputs(StepShape(1, 1), 1, device).batch
    table, norm_weight = machine.random(1, width), torch.ones(width, device=device)
    residual, squares = torch.zeros(1, width, device=device), torch.zeros(1, 1, device=device)
    stream = ResidualStream(residual, torch.zeros_like(table), squares, eps=0.0)

    def gap(*, is_programmatic: bool) -> Gap:
        embed_rows = operations_for(device, programmatic=is_programmatic).embed_rows

        def work() -> None:
            for _ in range(_TINY_KERNELS):
                embed_rows(batch, table, norm_weight, stream)

        return Gap(is_programmatic, us_per_launch(machine, work, _TINY_KERNELS))

    return gap(is_programmatic=False), gap(is_programmatic=True)


def measure_attention_parts(
    machine: Machine, bandwidth: Bandwidth, shape: Shape, rows: int, context: int
) -> AttentionParts:
    """Time attention, and its first kernel alone; elsewhere than on a GPU it is all in one."""
    case = AttentionCase(machine, shape, rows, context)
    both_us = attend_us = case.ours_us()
    if machine.is_gpu:
        from kernels.batch_attention.triton_kernel import attend  # noqa: PLC0415 - needs Triton

        case.attend = attend
        attend_us = case.ours_us()
    return AttentionParts(
        shape=shape.name,
        rows=rows,
        context=context,
        attend_us=attend_us,
        combine_us=both_us - attend_us,
        share_of_bandwidth=1000 * bandwidth.floor_ms(case.layer_bytes) / attend_us,
    )
