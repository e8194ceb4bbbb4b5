"""Only the check of the kernels, over models of real shapes: a report for whoever wrote them."""

from dataclasses import dataclass, field
from functools import partial

from msgspec import structs

from engine.bench.gpu.cases import Cases, Lab
from engine.bench.gpu.found_forms import CHECKED_LAYERS, found
from engine.bench.gpu.run import GpuBench, Section
from engine.bench.gpu.shapes import Shape
from engine.model.device import gpu_quantization
from engine.model.gpu.selfcheck.check import Extent
from engine.model.gpu.selfcheck.verdict import Finding

_ONCE = {
    "kv_commit",
    "embed_rows",
    "lm_head",
    "acceptance_walk",
}  # in a step; the others in a layer


@dataclass(frozen=True, slots=True)
class CheckedOperation:
    """What became of one operation; `runs` says by what. The phrases are empty where all is well."""

    operation: str
    runs: str
    problem: str
    varies: str
    note: str
    lost_ms_a_step: float


@dataclass(frozen=True, slots=True)
class KernelCheck(Cases[CheckedOperation]):
    """All operations of one model; `key` is what they were checked on."""

    key: dict[str, str] = field(default_factory=dict)
    is_text_equal: bool = False
    is_programmatic: bool = False
    seconds: float = 0.0


class GpuCheck(GpuBench):
    """The check alone, in place of the benchmark's sections; nothing of it is kept for loads."""

    def sections(self) -> list[Section]:
        """One for each shape; what a check needs it compiles first, without memory of the GPU's."""
        quantization = gpu_quantization(self._inputs.dtype)
        return [
            Section(
                f"kernels_{shape.name}_{shape.quantization_name}",
                partial(check_kernels, shape=shape, rows=self._sizes.rows),
            )
            for shape in (one.held(quantization) for one in self._inputs.shapes)
        ]


def check_kernels(lab: Lab, shape: Shape, rows: tuple[int, ...]) -> KernelCheck:
    """Check what a model of this shape would run here, in steps of these numbers of rows."""
    extent = Extent.of(lab.machine.device)._replace(buckets=rows)
    of_two = found(shape, lab.machine, lab.progress, extent)
    layers = shape.config.num_layers / CHECKED_LAYERS
    findings = tuple(_of_all(one, layers) for one in of_two.findings)
    verdict = structs.replace(of_two, findings=findings)
    return KernelCheck(
        cases=tuple(map(_checked, verdict.findings)),
        notes=(verdict.sentence,),
        key=verdict.key,
        is_text_equal=verdict.is_text_equal,
        is_programmatic=verdict.is_programmatic,
        seconds=verdict.seconds,
    )


def _of_all(finding: Finding, layers: float) -> Finding:
    """What it costs in a model of so many times the layers."""
    factor = 1.0 if finding.operation in _ONCE else layers
    return structs.replace(finding, lost_ms=finding.lost_ms * factor)


def _checked(finding: Finding) -> CheckedOperation:
    return CheckedOperation(
        operation=finding.operation,
        runs="PyTorch" if finding.is_twin else "kernel",
        problem=finding.problem,
        varies=finding.variance,
        note=finding.note,
        lost_ms_a_step=finding.lost_ms,
    )
