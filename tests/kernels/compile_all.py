"""Compiles every kernel of every shape for every architecture, and reads what came out.

    python -m tests.kernels.compile_all                      # all of it: hours on two cores
    python -m tests.kernels.compile_all --architectures 86 --models 7b --workers 4

No GPU is needed. Of each kernel: it compiles, and its memory on a multiprocessor is within the limit.
Of the products also: no loop spills anything, all take the architecture's matrix instruction, and each
chain of it adds up the inputs of a tile in ascending order (`mma.sync` and `wgmma`). Of the kernel of
all layers: likewise, and every sum in the layout that the kernels of one layer have. Kernels that start
early also wait for the one ahead of them and let the next one start.
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
from engine.model.gpu.persistent import layers_of
from engine.model.known_shapes import QWEN_SHAPES
from engine.model.model_config import ModelConfig
from kernels.device_limits import AMD, LIMITS, DeviceLimits, assumed
from kernels.operations import Operations
from kernels.persistent_layers import MOST_ROWS
from kernels.weight import QUANTIZATIONS, STORED_FORMS, Quantization
from tests.support.blueprint import empty_forward, empty_memory
from tests.support.compiled_kernel import Compiled, measured
from tests.support.matrix_order import disorder
from tests.support.sum_layouts import sum_layouts

ARCHITECTURES: tuple[int | str, ...] = (80, 86, 89, 90, 100, 120, "gfx942", "gfx1100")
MATRIX_INSTRUCTIONS = {90: "wgmma", 100: "tcgen05"}  # of the others mma.sync
FORMS = tuple(dict.fromkeys((*QUANTIZATIONS, *STORED_FORMS)))
ROWS = (16, 32, 64, 128)  # one for each row tile
KINDS = ((False, False), (True, False), (False, True))  # sampled, with logits
EARLY_ARCHITECTURES = (90, 100, 120)  # whose kernels may start before the one ahead has ended
EARLY_FORMS: tuple[Quantization, ...] = ("float", "fp8")
PERSISTENT_MODELS = ("0.5b", "1.5b")
_PERSISTENT = "persistent_layers_kernel"
_BARRIER = ("atom.global.gpu.release.add.u32", "ld.acquire.gpu.global.b32", "prefetch.global.L2")
_NEVER_EARLY = "kv_commit_kernel"  # it starts when all before it has ended
_EARLY = ("griddepcontrol.wait", "griddepcontrol.launch_dependents")
# Bytes that ptxas keeps in memory from the front of a loop to behind it: a number or two of a product,
# where one more program then fits a multiprocessor; of all layers what goes from phase to phase.
_SET_ASIDE = {False: 16, True: 128}
_TENSOR_MEMORY = 512  # columns of a multiprocessor, where it has such a memory
_MULTIPROCESSORS = 132  # any number compiles alike
# Inputs of a chain of its own, in forms that scale each.
_GROUPS: dict[Quantization, int] = {"q8_0": 32, "q4_k": 32, "q6_k": 16, "q6_k_min": 16}
_PRODUCTS = ("project_qkv_kernel", "skinny_matmul_kernel", "gate_up_kernel", "lm_head_kernel")


@dataclass(frozen=True, slots=True)
class Job:
    """What one process compiles."""

    architecture: int | str
    models: Sequence[str]
    quantizations: Sequence[Quantization]
    is_persistent: bool = False  # all layers in one launch, and nothing else
    is_programmatic: bool = False  # with early launch

    def __str__(self) -> str:
        kind = " in one launch" * self.is_persistent + " early" * self.is_programmatic
        return f"{self.architecture}{kind}"

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
    steps = partial(_launch, programmatic=job.is_programmatic)
    launch = _launch_persistent if job.is_persistent else steps
    with tempfile.TemporaryDirectory() as folder, assumed(job.limits):
        os.environ["TRITON_CACHE_DIR"] = folder
        for model in job.models:
            for quantization in job.quantizations:
                name = f"{job} {model} {quantization}"
                fail = partial(_note, problems, name)
                launch(QWEN_SHAPES[model], quantization, fail)
                if job.is_persistent and (problem := _other_sums(compiled, num_seen)):
                    fail(problem)
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
    for rows in ROWS:
        for sampled, logits in KINDS:
            shape = StepShape(rows, 1, is_sampled=sampled, has_logits=logits)
            forward.run(empty_memory(config, shape))


def _launch_persistent(
    config: ModelConfig, quantization: Quantization, fail: Callable[[str], None]
) -> None:
    """Launch the layers of a model's steps at once, then one by one to be compared."""
    from kernels.persistent_layers.triton_kernel import PersistentLayers

    forward = empty_forward(config, quantization)
    memory = empty_memory(config, StepShape(MOST_ROWS, 1))
    persistent = PersistentLayers.place(layers_of(forward), _MULTIPROCESSORS)
    for one in (replace(forward, persistent=persistent), forward):
        _guarded(partial(one.run_layers), fail, memory.inputs.batch, memory.activations)


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
    if one.name not in (*_PRODUCTS, _PERSISTENT):
        return ""
    if isinstance(job.architecture, str):
        is_there = re.search(r"\bv_(mfma|wmma)", one.kernel.asm["amdgcn"])
        return "" if is_there else "no matrix instruction"
    compiled = measured(one.kernel, folder)
    wanted = MATRIX_INSTRUCTIONS.get(job.architecture, "mma.sync")
    if compiled.spilled_in_loop or compiled.stack > _SET_ASIDE[one.name == _PERSISTENT]:
        return f"{compiled.stack} bytes of stack, {compiled.spilled_in_loop} uses in a loop"
    if compiled.matrix_instruction != wanted:
        return f"{compiled.matrix_instruction}, not {wanted}"
    if one.name == _PERSISTENT:
        return _missing(one, _BARRIER)
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


def _other_sums(compiled: Sequence[Any], num_seen: int) -> str:
    """Which sums a new persistent kernel adds up in an order that no kernel of a layer has.

    Those seen before count: attention's kernels are the same for every form of the weights.
    """
    new = [one for one in compiled[num_seen:] if one.name == _PERSISTENT]
    if not (own := _sums(new)):
        return "no sum is found in the kernel of all layers"
    others = own - _sums([one for one in compiled if one.name != _PERSISTENT])
    return f"sums of an order of its own: {sorted(others)}" if others else ""


def _sums(compiled: Sequence[Any]) -> set[str]:
    """The layouts of all sums of these kernels."""
    return set[str]().union(*(sum_layouts(one.kernel.asm["ttgir"]) for one in compiled))


def _jobs(arguments: argparse.Namespace) -> Iterator[Job]:
    models = arguments.models.split(",")
    for name in arguments.architectures.split(","):
        if name.isdecimal():
            forms = arguments.quantizations.split(",")
            yield Job(int(name), models, forms)
            if small := [model for model in models if model in PERSISTENT_MODELS]:
                yield Job(int(name), small, forms, is_persistent=True)
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
