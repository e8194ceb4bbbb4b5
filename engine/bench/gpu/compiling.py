"""Compiles the kernels that a run needs in processes beside each other, into Triton's cache.

One process compiles one kernel at a time, and a run of all shapes needs some hundreds.
"""

import multiprocessing
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace

from engine.bench.gpu.cases import Lab, sentence
from engine.bench.gpu.machine import Machine
from engine.bench.gpu.shapes import Shape, random_model
from engine.model.gpu.buffers import StepShape
from engine.progress import shown
from kernels.operations import operations_for

_LAYERS = 2  # that a layer's kernels compile with: all are alike
_POSITIONS = 1024
_WORKERS = 12
_JOB_BYTES = 4e9  # of a GPU: its context, two layers of 7b, the embedding and the head


@dataclass(frozen=True, slots=True)
class CompileJob:
    """The steps of one row count. `is_full` also those that sample, and those that keep logits."""

    shape: Shape
    rows: int
    is_full: bool = False
    is_programmatic: bool = False

    @property
    def name(self) -> str:
        """What to call it in reports."""
        return f"{self.shape.full_name}, {self.rows} rows"

    @property
    def steps(self) -> tuple[StepShape, ...]:
        """The steps whose kernels are to be there."""
        plain = StepShape(self.rows, 1)
        sampled, with_logits = replace(plain, is_sampled=True), replace(plain, has_logits=True)
        both = replace(sampled, has_logits=True)
        return (plain, sampled, with_logits, both) if self.is_full else (plain,)


@dataclass(frozen=True, slots=True)
class Compiled:
    """What was compiled, and what failed: the run itself meets that again and says where."""

    jobs: int
    workers: int
    failures: tuple[str, ...]


def compile_all(lab: Lab, jobs: Sequence[CompileJob], workers: int = _WORKERS) -> Compiled:
    """Compile every job's kernels. The processes are new ones: CUDA does not survive a fork."""
    workers = min(workers, len(jobs), lab.machine.room_for(_JOB_BYTES, workers))
    with shown(lab.progress, "compiling kernels", len(jobs)):
        left = _compile_beside(lab, jobs, workers)
        if left:  # one process that dies takes all others along
            left = _compile_beside(lab, left, -(-workers // 2))
        for job in left:
            lab.note(f"{job.name}: a process died over this job or another")
    return Compiled(len(jobs), workers, lab.notes)


def _compile_beside(lab: Lab, jobs: Sequence[CompileJob], workers: int) -> list[CompileJob]:
    """Compile in processes of their own; return the jobs that one which died left undone."""
    left, futures = list[CompileJob](), dict[Future[str], CompileJob]()
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context) as pool:
        for job in jobs:
            try:
                futures[pool.submit(compile_job, job)] = job
            except BrokenProcessPool:
                left.append(job)
        for future in as_completed(futures):
            job = futures[future]
            try:
                problem = future.result()
            except BrokenProcessPool:
                left.append(job)
                continue
            lab.progress.advance(1)
            if problem:
                lab.note(f"{job.name}: {problem}")
    return left


def compile_job(job: CompileJob) -> str:
    """Run the steps of a model of two layers; return what failed, if anything did.

    Words, since not every error of a compiler gets from one process to another.
    """
    try:
        machine = Machine.gpu()
        try:
            run_job(machine, job)
        finally:
            machine.release()
    except Exception as error:  # noqa: BLE001 - kernels, drivers and compilers fail in all ways
        return sentence(error)
    return ""


def run_job(machine: Machine, job: CompileJob) -> None:
    """Run the steps once on `machine`, which compiles what they need."""
    config = replace(job.shape.config, num_layers=_LAYERS, max_position=_POSITIONS)
    operations = operations_for(machine.device, programmatic=job.is_programmatic)
    model = random_model(replace(job.shape, config=config), _POSITIONS, machine, operations)
    for step in job.steps:
        model.graphs.launch(step)


def jobs_of(
    shapes: Iterable[Shape],
    rows: Sequence[int],
    *,
    is_full: bool = False,
    is_programmatic: bool = False,
) -> list[CompileJob]:
    """Jobs of several shapes, one for each row count."""
    return [
        CompileJob(shape, count, is_full, is_programmatic) for shape in shapes for count in rows
    ]
