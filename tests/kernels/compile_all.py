"""Compiles every kernel of every shape for every architecture, and reads what came out.

    python -m tests.kernels.compile_all                      # all of it: hours on two cores
    python -m tests.kernels.compile_all --architectures 86 --models 7b --workers 4

No GPU is needed. Of each kernel: it compiles, and its memory on a multiprocessor is within the limit.
Of the products also: no loop spills anything, all take the architecture's matrix instruction, and each
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
from dataclasses import dataclass, fields, replace
from functools import partial
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
from tests.support.matrix_order import disorder

ARCHITECTURES: tuple[int | str, ...] = (80, 86, 89, 90, 100, 120, "gfx942", "gfx1100")
MATRIX_INSTRUCTIONS = {90: "wgmma", 100: "tcgen05"}  # of the others mma.sync
FORMS = tuple(dict.fromkeys((*QUANTIZATIONS, *STORED_FORMS)))
KINDS = ((False, False), (True, False), (False, True))  # sampled, with logits
EARLY_ARCHITECTURES = (90, 100, 120)  # whose kernels may start before the one ahead has ended
EARLY_FORMS: tuple[Quantization, ...] = ("float", "fp8")
_NEVER_EARLY = "kv_commit_kernel"  # it starts when all before it has ended
_EARLY = ("griddepcontrol.wait", "griddepcontrol.launch_dependents")
# Bytes that ptxas keeps in memory from the front of a loop to behind it: a number or two, where one
# more program then fits a multiprocessor.
_SET_ASIDE = 16
_TENSOR_MEMORY = 512  # columns of a multiprocessor, where it has such a memory
# Inputs of a chain of its own, in forms that scale each.
_GROUPS: dict[Quantization, int] = {"q8_0": 32, "q4_k": 32, "q6_k": 16, "q6_k_min": 16}
_PRODUCTS = ("project_qkv_kernel", "skinny_matmul_kernel", "gate_up_kernel", "lm_head_kernel")


@dataclass(frozen=True, slots=True)
class Job:
    """What one process compiles."""

    architecture: int | str
    models: Sequence[str]
    quantizations: Sequence[Quantization]
    is_programmatic: bool = False  # with early launch

    def __str__(self) -> str:
        return f"{self.architecture}{' early' * self.is_programmatic}"

    @property
    def limits(self) -> DeviceLimits:
        """Those of the architecture."""
        return AMD if isinstance(self.architecture, str) else LIMITS[self.architecture]


@dataclass(frozen=True, slots=True)
class Report:
    """What became of a job: a sentence for each kernel that is not as it should be."""

    job: Job
    kernels: int
    most_shared: int
    seconds: float
    problems: Sequence[str]

    def __str__(self) -> str:
        return (
            f"{self.job}: {self.kernels} kernels, {len(self.problems)} failures, at most "
            f"{self.most_shared:,} bytes of shared memory, {self.seconds:.0f} s"
        )


def run_job(job: Job) -> Report:
    """Compile a job's kernels, in a process without an interpreter."""
    from tests.support.launch_compiler import compile_launches_for

    began, problems, num_seen, most_shared = time.monotonic(), list[str](), 0, 0
    torch.set_num_threads(1)
    compiled = compile_launches_for(job.architecture)
    with tempfile.TemporaryDirectory() as folder, assumed(job.limits):
        os.environ["TRITON_CACHE_DIR"] = folder
        for model in job.models:
            for quantization in job.quantizations:
                name = f"{job} {model} {quantization}"
                fail = partial(_note, problems, name)
                config, early = QWEN_SHAPES[model], job.is_programmatic
                _launch(config, quantization, fail, programmatic=early)
                for one in compiled[num_seen:]:
                    most_shared = max(most_shared, one.kernel.metadata.shared)
                    if problem := _problem(job, one, Path(folder)):
                        fail(f"{one.name} {one.constants.get('ROWS', '')}: {problem}")
                num_seen = len(compiled)
    return Report(job, num_seen, most_shared, time.monotonic() - began, problems)


def _note(problems: list[str], name: str, problem: str) -> None:
    problems.append(f"{name}: {problem}")


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


def _problem(job: Job, one: Any, folder: Path) -> str:
    """What is wrong with a kernel, empty where nothing is."""
    if one.kernel.metadata.shared > job.limits.shared_bytes:
        return f"{one.kernel.metadata.shared:,} bytes of shared memory"
    if getattr(one.kernel.metadata, "tmem_size", 0) > _TENSOR_MEMORY:
        return f"{one.kernel.metadata.tmem_size} columns of tensor memory"
    if job.is_programmatic and one.name != _NEVER_EARLY and (missing := _missing(one, _EARLY)):
        return missing
    if one.name not in _PRODUCTS:
        return ""
    if isinstance(job.architecture, str):
        is_there = re.search(r"\bv_(mfma|wmma)", one.kernel.asm["amdgcn"])
        return "" if is_there else "no matrix instruction"
    compiled = measured(one.kernel, folder)
    wanted = MATRIX_INSTRUCTIONS.get(job.architecture, "mma.sync")
    if compiled.spilled_in_loop or compiled.stack > _SET_ASIDE:
        return f"{compiled.stack} bytes of stack, {compiled.spilled_in_loop} uses in a loop"
    if compiled.matrix_instruction != wanted:
        return f"{compiled.matrix_instruction}, not {wanted}"
    if wanted == "tcgen05":  # whose order cannot be read so
        return ""
    return wrong_order(compiled, one.constants["QUANTIZATION"], one.constants["DEPTH"])


def _missing(one: Any, instructions: Sequence[str]) -> str:
    """The first of the instructions that a kernel does not have."""
    return next((f"no {name}" for name in instructions if name not in one.kernel.asm["ptx"]), "")


def wrong_order(compiled: Compiled, form: Quantization, depth: int) -> str:
    """What is wrong with the order in which a product adds up the inputs of a tile, if anything."""
    halves = 2 if form in ("int4", "int4_zeros") else 1
    return disorder(compiled.chains, _GROUPS.get(form, depth), halves)


def _jobs(arguments: argparse.Namespace) -> Iterator[Job]:
    models = arguments.models.split(",")
    for name in arguments.architectures.split(","):
        if name.isdecimal():
            forms = arguments.quantizations.split(",")
            yield Job(int(name), models, forms)
            early = [form for form in EARLY_FORMS if form in forms]
            if early and int(name) in EARLY_ARCHITECTURES:
                yield Job(int(name), models, early, is_programmatic=True)
        else:
            yield Job(name, models, ("float",))


def main() -> int:
    """Compile, print a line for each architecture, and return 1 where something is not as it should."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--architectures", default=",".join(map(str, ARCHITECTURES)))
    parser.add_argument("--models", default=",".join(QWEN_SHAPES))
    parser.add_argument("--quantizations", default=",".join(FORMS))
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    os.environ.pop("TRITON_INTERPRET", None)
    arguments = parser.parse_args()
    context = multiprocessing.get_context("spawn")  # one target in a process, from its start
    total = failed = 0
    with ProcessPoolExecutor(arguments.workers, context, max_tasks_per_child=1) as pool:
        for future in as_completed([pool.submit(run_job, job) for job in _jobs(arguments)]):
            report = future.result()
            print(report, *report.problems, sep="\n    ", flush=True)  # noqa: T201 - a command
            total, failed = total + report.kernels, failed + len(report.problems)
    print(f"{total} kernels, {failed} failures")  # noqa: T201
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
