"""Only the check that a load makes, over models of real shapes: a report for whoever wrote them."""

import tempfile
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from engine.bench.gpu.cases import Cases, Lab
from engine.bench.gpu.run import GpuBench, Section
from engine.bench.gpu.shapes import Shape, random_model
from engine.bench.gpu.steps import step_ms
from engine.model.gpu.selfcheck.first_load import settle
from kernels.operations import PORTABLE

_POSITIONS = 20_480  # room for four texts of 4,200 tokens
_CONTEXT = 512


@dataclass(frozen=True, slots=True)
class CheckedModel:
    """What runs a model of two layers, what does not and why, and how long a step of it takes."""

    model: str
    runs: str
    failed: tuple[str, ...]
    is_text_equal: bool
    slowdown: float
    ms_of_least_rows: float
    ms_of_most_rows: float
    seconds: float


@dataclass(frozen=True, slots=True)
class KernelCheck(Cases[CheckedModel]):
    """`key` is what the model was checked on."""

    key: dict[str, str] = field(default_factory=dict)


class GpuCheck(GpuBench):
    """The check alone, in place of the benchmark's sections; nothing of it is kept for loads."""

    def sections(self) -> list[Section]:
        """One for each shape."""
        return [
            Section(
                f"kernels_{shape.name}_{shape.quantization_name}", partial(check_shape, shape=shape)
            )
            for shape in self._inputs.shapes
        ]


def check_shape(lab: Lab, shape: Shape) -> KernelCheck:
    """Check what a model of this shape would run here, and time it."""
    machine = lab.machine
    operations = None if machine.has_kernels else PORTABLE
    model = random_model(shape.shallow, _POSITIONS, machine, operations)
    with tempfile.TemporaryDirectory(prefix="foregram-") as folder:
        model, verdict = settle(model, Path(folder), lab.progress)
    least, most = (step_ms(machine, model, model.row_buckets[at], _CONTEXT) for at in (0, -1))
    case = CheckedModel(
        model=shape.full_name,
        runs=str(verdict.runs),
        failed=tuple(f"{form}: {reason}" for form, reason in verdict.failed.items()),
        is_text_equal=verdict.is_text_equal,
        slowdown=verdict.slowdown,
        ms_of_least_rows=least,
        ms_of_most_rows=most,
        seconds=verdict.seconds,
    )
    return KernelCheck((case,), (verdict.sentence,), verdict.key)
