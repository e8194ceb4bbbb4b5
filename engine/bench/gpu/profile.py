"""Where a step's time goes: gaps between kernels, each kernel alone, and other cuts of the products."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import torch

from engine.bench.gpu.attention import AttentionCase
from engine.bench.gpu.cases import Cases, Lab
from engine.bench.gpu.compiling import jobs_of
from engine.bench.gpu.machine import Machine, measure_bandwidth
from engine.bench.gpu.product_cuts import measure_cuts
from engine.bench.gpu.products import ProductTime, measure_products
from engine.bench.gpu.run import GpuBench, Measure, Section
from engine.bench.gpu.shapes import Shape
from engine.bench.gpu.steps import StepPlan, measure_programmatic, measure_steps
from kernels.operations import operations_for
from kernels.residual import ResidualStream
from kernels.weight import QUANTIZATIONS, Weight

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
        shapes = self._inputs.shapes
        last = [shapes[-1].held(quantization) for quantization in QUANTIZATIONS]
        jobs = jobs_of(shapes, _ROWS) + jobs_of(last[1:], _ROWS)
        if self._machine.starts_early:
            jobs += jobs_of(shapes, _ROWS, is_programmatic=True)
        return self._compilation(jobs) + [
            Section(name, measure, is_optional=name != "bandwidth")
            for name, measure in self._measures(last).items()
        ]

    def _measures(self, last: Sequence[Shape]) -> dict[str, Measure]:
        """All sections, of the `last` shape in every quantization."""
        shapes, sizes = self._inputs.shapes, self._sizes
        rows = [count for count in _ROWS if count in sizes.rows]
        cases = tuple((count, sizes.contexts[1]) for count in rows)
        plans = [StepPlan(shape, cases) for shape in shapes]
        measures: dict[str, Measure] = {
            "bandwidth": lambda lab: measure_bandwidth(lab.machine, sizes.numbers),
            "gaps": lambda lab: measure_gaps(lab.machine),
            "steps": lambda lab: measure_steps(lab, plans),
        }
        for shape in shapes:
            measures |= {
                f"products_{shape.name}_bf16": partial(_products_alone, shape=shape, rows=rows),
                f"attention_{shape.name}": partial(
                    measure_attention_parts, shape=shape, cases=cases
                ),
            }
            if self._machine.starts_early:
                early = partial(measure_programmatic, shape=shape, cases=cases)
                measures[f"programmatic_{shape.name}"] = early
        measures |= {
            f"products_{one.name}_{one.quantization}": partial(
                _products_alone, shape=one, rows=rows
            )
            for one in last[1:]
        }
        return measures | {
            f"cuts_{one.name}_{one.quantization_name}": partial(measure_cuts, shape=one)
            for one in last
        }


def _products_alone(lab: Lab, shape: Shape, rows: Sequence[int]) -> Cases[ProductTime]:
    return measure_products(lab, [shape], rows, peers={shape.quantization: {}})


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


def measure_attention_parts(
    lab: Lab, shape: Shape, cases: Sequence[tuple[int, int]]
) -> tuple[AttentionParts, ...]:
    """Time attention, and its first kernel alone; elsewhere than on a GPU it is all in one."""
    return tuple(_attention_parts(lab, shape, rows, context) for rows, context in cases)


def _attention_parts(lab: Lab, shape: Shape, rows: int, context: int) -> AttentionParts:
    bandwidth, case = lab.bandwidth, AttentionCase(lab.machine, shape, rows, context)
    both_us = attend_us = case.ours_us()
    if lab.machine.is_gpu:
        from kernels.batch_attention.triton_kernel import attend  # noqa: PLC0415 - needs Triton

        case.attend = attend
        attend_us = case.ours_us()
    return AttentionParts(
        shape=shape.name,
        rows=rows,
        context=context,
        attend_us=attend_us,
        combine_us=both_us - attend_us,
        share_of_bandwidth=bandwidth.share(case.layer_bytes, attend_us),
    )
