"""Compiles every kernel of every shape for every architecture, and reads what came out.

    python -m tests.kernels.compile_all                   # all of it: an hour on two cores
    python -m tests.kernels.compile_all --models 0.5b     # of a model: minutes
    python -m tests.kernels.compile_all --architectures 86 --forms q4_k --operations gate_up

No GPU is needed. Of each kernel: it compiles, its memory on a multiprocessor is within the limit, and
it spills next to nothing. Kernels that multiply take the architecture's matrix instruction alone, and
load ahead. Products fuse no additions, and each chain of `mma.sync` or `wgmma` adds up the inputs of a
tile in ascending order. On an H100 enough programs share a multiprocessor. Kernels that start early
also wait for the one ahead of them and let the next one start.
"""

import argparse
import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import cache, partial
from importlib.metadata import version
from itertools import product
from pathlib import Path
from typing import Any

import torch

from engine.model.gpu.buffers import StepShape
from engine.model.model_config import QWEN_SHAPES
from kernels.device_limits import LIMITS, DeviceLimits
from kernels.operations import OPERATIONS
from kernels.product.tiles import ROW_TILES
from kernels.weight import STORED_FORMS, Quantization
from tests.support.assumed_limits import assumed
from tests.support.blueprint import empty_forward, empty_memory
from tests.support.compiled_kernel import Compiled, measured
from tests.support.launch_compiler import CompiledLaunch, LaunchCompiler
from tests.support.matrix_order import disorder
from tests.support.products import QUANTIZATIONS

_EARLY_END = "-early"  # of an architecture's name: its kernels start before the one ahead has ended
ARCHITECTURES = ("80", "86", "89", "90", "90-early", "100", "100-early", "120", "120-early")
_MATRIX_INSTRUCTIONS = {90: "wgmma", 100: "tcgen05"}  # of others mma.sync
FORMS = tuple(dict.fromkeys((*QUANTIZATIONS, *STORED_FORMS)))
KINDS = ((False, False), (True, False), (False, True))  # sampled, with logits
_NEVER_EARLY = "kv_commit_kernel"  # it starts when all before it has ended
_EARLY = ("griddepcontrol.wait", "griddepcontrol.launch_dependents")
# Bytes that ptxas keeps in memory from the front of a loop to behind it: a few numbers, where one more
# program then fits a multiprocessor.
_SET_ASIDE = 16
_SET_ASIDE_WIDE = 128  # in tiles of 128 rows, which an H200 runs faster than two of 64 all the same
_TENSOR_MEMORY = 512  # columns of a multiprocessor, where it has such a memory
# Inputs of a chain of its own, in forms that scale each.
_GROUPS: dict[Quantization, int] = {"q8_0": 32, "q4_k": 32, "q6_k": 16, "q6_k_min": 16}
_HEAD, _ATTENTION = "lm_head_kernel", "attend_kernel"
_PRODUCTS = ("project_qkv_kernel", "skinny_matmul_kernel", "gate_up_kernel", _HEAD)
# Bytes where more is kept, the most of Triton 3.6.0 and 3.7.1: products of 64 rows of a form,
# attention of 1.5b to 32b, and of 0.5b on sm_80, 86 and 89.
_KNOWN_SPILLS = {
    (120, "int4_zeros"): 24,
    (120, "q4_k"): 40,
    (86, "q4_k"): 32,
    (89, "q4_k"): 32,
    (100, _ATTENTION): 360,
    (80, _ATTENTION): 32,
    (86, _ATTENTION): 24,
    (89, _ATTENTION): 24,
}
_LEAST_PROGRAMS = {_ATTENTION: 2, "combine_kernel": 3}  # of a multiprocessor of an H100


@dataclass(frozen=True, slots=True)
class Job:
    """What is compiled at a time: the steps of a model in one form. `target`: see `ARCHITECTURES`."""

    model: str
    form: Quantization
    target: str
    rows: Sequence[int] = ROW_TILES
    operations: Sequence[str] = OPERATIONS

    def __str__(self) -> str:
        return f"{self.target} {self.model} {self.form}"

    @property
    def is_early(self) -> bool:
        return self.target.endswith(_EARLY_END)

    @property
    def architecture(self) -> int:
        """As Triton names it: 90."""
        return int(self.target.removesuffix(_EARLY_END))

    @property
    def limits(self) -> DeviceLimits:
        return LIMITS[self.architecture]


@dataclass(frozen=True, slots=True)
class Report:
    """What became of a job: a sentence for each kernel that is not as it should be."""

    job: Job
    problems: Sequence[str]
    kernels: Sequence[str] = ()  # Triton's keys of what no job before compiled
    set_aside: Sequence[str] = ()  # kernels that keep a few numbers in memory, and how many bytes
    seconds: float = 0.0

    def __str__(self) -> str:
        count, failures = len(self.kernels), len(self.problems)
        return f"{self.job}: {count} kernels, {failures} failures, {self.seconds:.0f} s"


@cache
def _compiler() -> LaunchCompiler:
    """That of this process, which keeps what jobs before have compiled."""
    torch.set_num_threads(1)
    return LaunchCompiler()


def run_job(job: Job) -> Report:
    """Compile a job's kernels, in a process without an interpreter."""
    began, compiler = time.monotonic(), _compiler()
    problems, set_aside = list[str](), list[str]()
    compiler.compile_for(job.architecture)
    with tempfile.TemporaryDirectory() as folder, assumed(job.limits):
        _launch(job, problems.append)
        compiled = compiler.take()
        for one in compiled:
            name = f"{one.name} {one.constants.get('ROWS', '')}".strip()
            costs = measured(one.kernel, Path(folder))
            problems += (f"{name}: {problem}" for problem in _problems(job, one, costs))
            if costs.stack:
                set_aside.append(f"({name} keeps {costs.stack} bytes in memory)")
    keys = [one.kernel.hash for one in compiled]
    return Report(job, problems, keys, set_aside, time.monotonic() - began)


def _launch(job: Job, fail: Callable[[str], None]) -> None:
    config = QWEN_SHAPES[job.model]
    forward = empty_forward(config, job.form, programmatic=job.is_early)
    guarded: dict[str, Any] = {
        name: partial(_guarded, getattr(forward.operations, name), fail)
        if name in job.operations
        else _nothing
        for name in OPERATIONS
    }
    forward = replace(forward, operations=replace(forward.operations, **guarded))
    for rows, (sampled, logits) in product(job.rows, KINDS):
        shape = StepShape(rows, 1, is_sampled=sampled, has_logits=logits)
        forward.run(empty_memory(config, shape))


def _nothing(*_: Any) -> None:
    """Stand for an operation that nobody asked for."""


def _guarded(operation: Callable[..., None], fail: Callable[[str], None], *arguments: Any) -> None:
    """Go on behind a kernel that does not compile."""
    try:
        operation(*arguments)
    except Exception as error:  # noqa: BLE001 - compilers fail in all ways
        message = f"{type(error).__name__}: {error}"
        fail(f"{operation.func.__name__}: {message[:300]}")  # type: ignore[attr-defined]


def _problems(job: Job, one: CompiledLaunch, costs: Compiled) -> Iterator[str]:
    """Yield what is wrong with a kernel; `costs` is what was read off it."""
    metadata, assembly = one.kernel.metadata, one.kernel.asm
    if metadata.shared > job.limits.shared_bytes:
        yield f"{metadata.shared:,} bytes of shared memory"
    if getattr(metadata, "tmem_size", 0) > _TENSOR_MEMORY:
        yield f"{metadata.tmem_size} columns of tensor memory"
    if job.is_early and one.name != _NEVER_EARLY:
        yield from (f"no {name}" for name in _EARLY if name not in assembly["ptx"])
    yield from _costs(job, one, costs)


def _costs(job: Job, one: CompiledLaunch, compiled: Compiled) -> Iterator[str]:
    """Yield what a kernel has that it should not have, or lacks."""
    wanted = _MATRIX_INSTRUCTIONS.get(job.architecture, "mma.sync")
    known = [_KNOWN_SPILLS.get((job.architecture, name), 0) for name in (job.form, one.name)]
    is_wide = one.constants.get("ROWS") == ROW_TILES[-1]
    if compiled.stack > max(_SET_ASIDE_WIDE if is_wide else _SET_ASIDE, *known):
        yield f"{compiled.stack} bytes of stack"
    if one.name in _PRODUCTS or one.name == _ATTENTION:
        if compiled.matrix_instruction != wanted:
            yield f"{compiled.matrix_instruction}, not {wanted}"
        if not compiled.copies_ahead:
            yield "no load that runs ahead"
    if one.name in _PRODUCTS and one.name != _HEAD and compiled.fuses:  # logarithms need some
        yield "fused additions"
    if one.name in _PRODUCTS and wanted != "tcgen05":  # whose order cannot be read so
        yield from _wrong_order(one, compiled)
    if job.architecture == 90 and compiled.programs_per_sm < _least_programs(job, one):
        yield f"{compiled.programs_per_sm} programs on a multiprocessor"


def _wrong_order(one: CompiledLaunch, compiled: Compiled) -> Iterator[str]:
    """Yield what is wrong with the order in which a product adds up the inputs of a tile."""
    form = one.constants["QUANTIZATION"]
    depth = min(one.constants["DEPTH"], one.constants["STEP"])
    halves = 2 if form in ("int4", "int4_zeros") else 1
    if problem := disorder(compiled.chains, _GROUPS.get(form, depth), halves):
        yield problem


def _least_programs(job: Job, one: CompiledLaunch) -> int:
    """How many programs hide each other's waiting; a product's, where rows and unpacking are few."""
    if one.name in _PRODUCTS and job.form in ("float", "fp8") and one.constants["ROWS"] <= 16:
        return 2
    return _LEAST_PROGRAMS.get(one.name, 1)


def _jobs(arguments: argparse.Namespace) -> Iterator[Job]:
    """Neighbours have different targets: what all forms share is then compiled once."""
    for model, form, target in product(arguments.models, arguments.forms, arguments.architectures):
        yield Job(model, form, target, arguments.rows, arguments.operations)


def _reports(jobs: Sequence[Job], workers: int) -> Iterator[Report]:
    """Run jobs in as many processes, each with one Triton that is kept."""
    if workers == 1:
        yield from map(run_job, jobs)
        return
    with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) as pool:
        yield from pool.map(run_job, jobs)


def _arguments() -> argparse.Namespace:
    def names(text: str) -> list[str]:
        return text.split(",")

    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--architectures", type=names, default=ARCHITECTURES)
    parser.add_argument("--models", type=names, default=list(QWEN_SHAPES))
    parser.add_argument("--forms", type=names, default=FORMS)
    parser.add_argument("--rows", type=lambda text: list(map(int, names(text))), default=ROW_TILES)
    parser.add_argument("--operations", type=names, default=OPERATIONS)
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    return parser.parse_args()


def main() -> int:
    """Compile, print a line for each job, and return 1 where something is not as it should."""
    arguments, began = _arguments(), time.monotonic()
    os.environ.pop("TRITON_INTERPRET", None)
    jobs, reports = list(_jobs(arguments)), list[Report]()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TRITON_CACHE_DIR"] = folder  # of all processes
        for report in _reports(jobs, arguments.workers):
            reports.append(report)
            place = f"[{len(reports)}/{len(jobs)}] {report}"
            told = (place, *report.problems, *report.set_aside)
            print(*told, sep="\n    ", flush=True)  # noqa: T201 - a command
    kernels = len({key for report in reports for key in report.kernels})
    failures, seconds = sum(len(report.problems) for report in reports), time.monotonic() - began
    summary = f"{kernels} kernels, {failures} failures, {seconds:.0f} s"
    print(f"Triton {version('triton')}: {summary}")  # noqa: T201
    return min(failures, 1)


if __name__ == "__main__":
    sys.exit(main())
