"""Only the check of the kernels, over models of real shapes: a report for whoever wrote them."""

import tempfile
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from msgspec import structs

from engine.bench.gpu.cases import Cases, Lab
from engine.bench.gpu.run import GpuBench, Section
from engine.bench.gpu.shapes import SHALLOW_LAYERS, Shape, random_model
from engine.model.gpu.selfcheck.check import Extent
from engine.model.gpu.selfcheck.first_load import settle
from engine.model.gpu.selfcheck.verdict import Finding, Verdict

_POSITIONS = 1024
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
        return [
            Section(
                f"kernels_{shape.name}_{shape.quantization_name}",
                partial(check_kernels, shape=shape, rows=self._sizes.rows),
            )
            for shape in self._inputs.shapes
        ]


def check_kernels(lab: Lab, shape: Shape, rows: tuple[int, ...]) -> KernelCheck:
    """Check what a model of this shape would run here, in steps of these numbers of rows."""
    shallow = _verdict(lab, shape.shallow, rows)
    layers = shape.config.num_layers / SHALLOW_LAYERS
    findings = tuple(_of_all(one, layers) for one in shallow.findings)
    verdict = structs.replace(shallow, findings=findings)
    return KernelCheck(
        cases=tuple(map(_checked, verdict.findings)),
        notes=(verdict.sentence,),
        key=verdict.key,
        is_text_equal=verdict.is_text_equal,
        is_programmatic=verdict.is_programmatic,
        seconds=verdict.seconds,
    )


def _verdict(lab: Lab, shape: Shape, rows: tuple[int, ...]) -> Verdict:
    """What a load would find, of which nothing is kept for loads."""
    extent = Extent.of(lab.machine.device)._replace(buckets=rows)
    model = random_model(shape, _POSITIONS, lab.machine)
    with tempfile.TemporaryDirectory(prefix="foregram-") as folder:
        return settle(model, Path(folder), lab.progress, extent)


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
