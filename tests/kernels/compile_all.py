"""Compiles every kernel of every shape for every architecture, and reads what came out.

    python -m tests.kernels.compile_all                   # all of it: an hour on two cores
    python -m tests.kernels.compile_all --models 0.5b     # of a model: minutes
    python -m tests.kernels.compile_all --architectures 86 --models 7b --forms float,q4_k

No GPU is needed. Of each kernel: it compiles, its memory on a multiprocessor is within the limit, and
no loop spills anything. Of the products also: all take the architecture's matrix instruction, and each
chain of it adds up the inputs of a tile in ascending order (`mma.sync` and `wgmma`). Kernels
that start early also wait for the one ahead of them and let the next one start.
"""

import argparse
import multiprocessing
import os
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field, fields, replace
from functools import cache, partial
from importlib.metadata import version
from itertools import product
from pathlib import Path
from typing import Any

import torch

from engine.model.gpu.buffers import StepShape
from engine.model.known_shapes import QWEN_SHAPES
from engine.model.model_config import ModelConfig
from kernels.device_limits import AMD, LIMITS, DeviceLimits, assumed
from kernels.operations import Operations
from kernels.product.tiles import ROW_TILES
from kernels.weight import QUANTIZATIONS, STORED_FORMS, Quantization
from tests.support.blueprint import empty_forward, empty_memory
from tests.support.compiled_kernel import Compiled, measured
from tests.support.launch_compiler import CompiledLaunch, LaunchCompiler
from tests.support.matrix_order import disorder

_EARLY_END = "-early"  # of an architecture's name: its kernels start before the one ahead has ended
ARCHITECTURES = (
    *("80", "86", "89", "90", "90-early", "100", "100-early", "120", "120-early"),
    *("gfx942", "gfx1100"),  # in bfloat16 alone
)
MATRIX_INSTRUCTIONS: dict[int | str, str] = {90: "wgmma", 100: "tcgen05"}  # of the others mma.sync
FORMS = tuple(dict.fromkeys((*QUANTIZATIONS, *STORED_FORMS)))
KINDS = ((False, False), (True, False), (False, True))  # sampled, with logits
_NEVER_EARLY = "kv_commit_kernel"  # it starts when all before it has ended
_EARLY = ("griddepcontrol.wait", "griddepcontrol.launch_dependents")
# Bytes that ptxas keeps in memory from the front of a loop to behind it: a number or two, where one
# more program then fits a multiprocessor.
_SET_ASIDE = 16
# What keeps more there, and reads a number of it in a loop: by Triton 3.7.1, of 64 rows.
_KNOWN_SPILLS: dict[tuple[int | str, Quantization], int] = {(120, "int4_zeros"): 24}
_TENSOR_MEMORY = 512  # columns of a multiprocessor, where it has such a memory
# Inputs of a chain of its own, in forms that scale each.
_GROUPS: dict[Quantization, int] = {"q8_0": 32, "q4_k": 32, "q6_k": 16, "q6_k_min": 16}
_PRODUCTS = ("project_qkv_kernel", "skinny_matmul_kernel", "gate_up_kernel", "lm_head_kernel")


@dataclass(frozen=True, slots=True)
class Job:
    """What is compiled at a time: the steps of a model in one form. `target`: see `ARCHITECTURES`."""

    model: str
    form: Quantization
    target: str

    def __str__(self) -> str:
        return f"{self.target} {self.model} {self.form}"

    @property
    def is_early(self) -> bool:
        """Whether its kernels may start before the one ahead of them has ended."""
        return self.target.endswith(_EARLY_END)

    @property
    def architecture(self) -> int | str:
        """As Triton names it: 90, or `gfx942`."""
        name = self.target.removesuffix(_EARLY_END)
        return int(name) if name.isdecimal() else name

    @property
    def limits(self) -> DeviceLimits:
        """Those of the architecture."""
        return LIMITS[self.architecture] if isinstance(self.architecture, int) else AMD


@dataclass(slots=True)
class Report:
    """What became of a job: a sentence for each kernel that is not as it should be."""

    job: Job
    kernels: list[str] = field(default_factory=list)  # Triton's keys of what no job before compiled
    problems: list[str] = field(default_factory=list)
    set_aside: list[str] = field(default_factory=list)  # kernels with a number or two in memory
    most_shared: int = 0
    seconds: float = 0.0

    def __str__(self) -> str:
        return (
            f"{self.job}: {len(self.kernels)} kernels, {len(self.problems)} failures, at most "
            f"{self.most_shared:,} bytes of shared memory, {self.seconds:.0f} s"
        )

    def read(self, one: CompiledLaunch, folder: Path) -> None:
        """Note what a kernel takes, and what is wrong with it."""
        name = f"{one.name} {one.constants.get('ROWS', '')}".strip()
        self.kernels.append(one.kernel.hash)
        self.most_shared = max(self.most_shared, one.kernel.metadata.shared)
        compiled = None if self.job.limits is AMD else measured(one.kernel, folder)
        if compiled is not None and compiled.stack > 0:
            self.set_aside.append(f"{self.job}: {name}: {compiled.stack} bytes")
        if problem := _problem(self.job, one, compiled):
            self.problems.append(f"{name}: {problem}")


@cache
def _compiler() -> LaunchCompiler:
    """That of this process, which keeps what jobs before have compiled."""
    torch.set_num_threads(1)
    return LaunchCompiler()


def run_job(job: Job) -> Report:
    """Compile a job's kernels, in a process without an interpreter."""
    began, report, compiler = time.monotonic(), Report(job), _compiler()
    compiler.compile_for(job.architecture)
    with tempfile.TemporaryDirectory() as folder, assumed(job.limits):
        config, fail = QWEN_SHAPES[job.model], report.problems.append
        _launch(config, job.form, fail, programmatic=job.is_early)
        for one in compiler.take():
            report.read(one, Path(folder))
    report.seconds = time.monotonic() - began
    return report


def _launch(
    config: ModelConfig,
    quantization: Quantization,
    fail: Callable[[str], None],
    *,
    programmatic: bool,
) -> None:
    """Launch all kernels of a model's steps."""
    forward = empty_forward(config, quantization, programmatic=programmatic)
    guarded: dict[str, Any] = {
        one.name: partial(_guarded, getattr(forward.operations, one.name), fail)
        for one in fields(Operations)
        if one.name != "asks_host"
    }
    forward = replace(forward, operations=replace(forward.operations, **guarded))
    for rows in ROW_TILES:
        for sampled, logits in KINDS:
            shape = StepShape(rows, 1, is_sampled=sampled, has_logits=logits)
            forward.run(empty_memory(config, shape))


def _guarded(operation: Callable[..., None], fail: Callable[[str], None], *arguments: Any) -> None:
    """Go on behind a kernel that does not compile."""
    try:
        operation(*arguments)
    except Exception as error:  # noqa: BLE001 - compilers fail in all ways
        message = f"{type(error).__name__}: {error}"
        fail(f"{operation.func.__name__}: {message[:300]}")  # type: ignore[attr-defined]


def _problem(job: Job, one: CompiledLaunch, compiled: Compiled | None) -> str:
    """What is wrong with a kernel, empty where nothing is; `compiled` is what was read off it."""
    if one.kernel.metadata.shared > job.limits.shared_bytes:
        return f"{one.kernel.metadata.shared:,} bytes of shared memory"
    if getattr(one.kernel.metadata, "tmem_size", 0) > _TENSOR_MEMORY:
        return f"{one.kernel.metadata.tmem_size} columns of tensor memory"
    if job.is_early and one.name != _NEVER_EARLY and (missing := _missing(one, _EARLY)):
        return missing
    if compiled is not None and (spill := _spill(job, compiled)):
        return spill
    if one.name not in _PRODUCTS:
        return ""
    if compiled is not None:
        return _wrong_product(job, one, compiled)
    is_there = re.search(r"\bv_(mfma|wmma)", one.kernel.asm["amdgcn"])
    return "" if is_there else "no matrix instruction"


def _spill(job: Job, compiled: Compiled) -> str:
    if compiled.stack <= _KNOWN_SPILLS.get((job.architecture, job.form), 0):
        return ""
    if compiled.spilled_in_loop or compiled.stack > _SET_ASIDE:
        return f"{compiled.stack} bytes of stack, {compiled.spilled_in_loop} uses in a loop"
    return ""


def _wrong_product(job: Job, one: CompiledLaunch, compiled: Compiled) -> str:
    wanted = MATRIX_INSTRUCTIONS.get(job.architecture, "mma.sync")
    if compiled.matrix_instruction != wanted:
        return f"{compiled.matrix_instruction}, not {wanted}"
    if wanted == "tcgen05":  # whose order cannot be read so
        return ""
    return wrong_order(compiled, one.constants["QUANTIZATION"], one.constants["DEPTH"])


def _missing(one: CompiledLaunch, instructions: Sequence[str]) -> str:
    """The first of the instructions that a kernel does not have."""
    return next((f"no {name}" for name in instructions if name not in one.kernel.asm["ptx"]), "")


def wrong_order(compiled: Compiled, form: Quantization, depth: int) -> str:
    """What is wrong with the order in which a product adds up the inputs of a tile, if anything."""
    halves = 2 if form in ("int4", "int4_zeros") else 1
    return disorder(compiled.chains, _GROUPS.get(form, depth), halves)


def _jobs(arguments: argparse.Namespace) -> Iterator[Job]:
    """Neighbours have different targets: what all forms share is then compiled once."""
    for model, form, target in product(arguments.models, arguments.forms, arguments.architectures):
        job = Job(model, form, target)
        if form == "float" or job.limits is not AMD:
            yield job


def _run(jobs: Sequence[Job], workers: int) -> Iterator[Report]:
    """Run jobs in as many processes, each with one Triton that is kept; tell of each as it ends."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, context) as pool:
        running = {pool.submit(run_job, job): job for job in jobs}
        try:
            for future in as_completed(running):
                yield future.result()
                del running[future]
        except BrokenProcessPool:
            for job in list(running.values())[:workers]:
                yield Report(
                    job, problems=["a compiler ended its process; no job after it was run"]
                )


def _arguments() -> argparse.Namespace:
    def names(text: str) -> list[str]:
        return text.split(",")

    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--architectures", type=names, default=ARCHITECTURES)
    parser.add_argument("--models", type=names, default=list(QWEN_SHAPES))
    parser.add_argument("--forms", type=names, default=FORMS)
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    return parser.parse_args()


def main() -> int:
    """Compile, print a line for each job, and return 1 where something is not as it should."""
    arguments, began = _arguments(), time.monotonic()
    os.environ.pop("TRITON_INTERPRET", None)
    jobs, reports = list(_jobs(arguments)), list[Report]()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TRITON_CACHE_DIR"] = folder  # of all processes
        for report in _run(jobs, arguments.workers):
            reports.append(report)
            place = f"[{len(reports)}/{len(jobs)}] {report}"
            print(place, *report.problems, sep="\n    ", flush=True)  # noqa: T201 - a command
    print(_summary(reports, time.monotonic() - began))  # noqa: T201
    return int(any(report.problems for report in reports))


def _summary(reports: Sequence[Report], seconds: float) -> str:
    kernels = len({key for report in reports for key in report.kernels})
    failures = sum(len(report.problems) for report in reports)
    set_aside = sorted({name for report in reports for name in report.set_aside})
    return "\n    ".join(
        [
            f"Triton {version('triton')}: {kernels} kernels, {failures} failures, {seconds:.0f} s; "
            f"kernels that keep a few numbers in memory: {len(set_aside)}",
            *set_aside,
        ]
    )


if __name__ == "__main__":
    sys.exit(main())
