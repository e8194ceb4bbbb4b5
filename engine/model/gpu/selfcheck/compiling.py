"""Compiles a model's kernels in processes beside each other, before anything waits for them.

They need no GPU and no weights: kernels are compiled for the shapes of tensors without values, and
are found in Triton's cache afterwards. One process compiles one kernel at a time, at about a second
each. What fails here fails again where it is run, and is told there; what ends the compiler's whole
process, as LLVM does with code that it cannot translate, must never be run, and is found here.
"""

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import partial
from itertools import product
from typing import Any

import torch

from engine.model.gpu.activations import Activations
from engine.model.gpu.arena import KVArena
from engine.model.gpu.buffers import Inputs, Outputs, StepShape
from engine.model.gpu.forward import Forward, StepMemory
from engine.model.gpu.selfcheck.check import OPERATIONS
from engine.model.gpu.weights import GpuWeights
from engine.model.model_config import ModelConfig
from engine.progress import Progress, counted, shown
from kernels.device_limits import assumed, limits_for
from kernels.operations import Operations, operations_for
from kernels.scratch import Scratch

_SHARING = ((1, 4, 8, 16), (32, 64, 128))  # rows of steps most of whose kernels are one binary
# Of who stops a process, as a system without memory does, and of a full disk.
_OUTSIDE = ("SIGKILL", "SIGTERM", "SIGINT", "SIGHUP", "SIGBUS")
_STOPPED = {-getattr(signal, name, 0) for name in _OUTSIDE}
_META, _CPU = torch.device("meta"), torch.device("cpu")


@dataclass(frozen=True, slots=True)
class CompileTask:
    """The steps of some row counts. `weights` have no values, and one layer of each kind.

    `is_programmatic`: kernels that start early; `only`: of the operations this one, if any.
    """

    config: ModelConfig
    weights: GpuWeights
    positions: int
    dtype: torch.dtype
    scratch: tuple[int, int]
    architecture: int
    rows: tuple[int, ...]
    is_programmatic: bool
    only: str = ""

    @property
    def parts(self) -> Sequence["CompileTask"]:
        """What can be done without: one operation each."""
        return [replace(self, only=name) for name in OPERATIONS]


_Work = Callable[[CompileTask], None]


def compile_ahead(
    forward: Forward, progress: Progress, *, with_programmatic: bool
) -> list[CompileTask]:
    """Compile what the steps of a model on a GPU launch; return those parts that end the compiler."""
    device = forward.arena.keys.device
    major, minor = torch.cuda.get_device_capability(device)
    kinds = (False, True) if with_programmatic else (False,)
    tasks = [
        _task(forward, 10 * major + minor, rows, is_programmatic=kind)
        for kind in kinds
        for rows in _SHARING
    ]
    return compile_all(tasks, progress)


def compile_all(
    tasks: Sequence[CompileTask], progress: Progress, work: _Work | None = None
) -> list[CompileTask]:
    """Run the tasks in processes of their own; return those parts that `work` does not survive.

    Where a process ends, each part is tried again, alone and twice: a machine may lack memory now and
    then, or end any process at all.
    """
    work = work or compile_task
    if not run_beside(tasks, progress, work) or ends_process(tasks[0], _nothing):
        return []

    def ended(tried: Sequence[CompileTask]) -> list[CompileTask]:
        counting = counted(progress, "finding what ends the compiler", tried)
        return [task for task in counting if ends_process(task, work)]

    return ended(ended([part for task in ended(tasks) for part in task.parts]))


def run_beside(tasks: Sequence[CompileTask], progress: Progress, work: _Work) -> bool:
    """Run the tasks in processes, new ones, as CUDA survives no fork; return whether one of them ended."""
    context = multiprocessing.get_context("spawn")
    workers = min(len(tasks), max(1, (os.cpu_count() or 1) // 2))  # each has a torch of its own
    try:
        with (
            shown(progress, "compiling the kernels", len(tasks)),
            ProcessPoolExecutor(workers, mp_context=context) as pool,
        ):
            running = [pool.submit(work, task) for task in tasks]
            for _ in as_completed(running):
                progress.advance(1)
    except BrokenProcessPool:
        return True
    except OSError:  # no processes: they are compiled all the same, where they are run
        return False
    return any(isinstance(one.exception(), BrokenProcessPool) for one in running)


def ends_process(task: CompileTask, work: _Work) -> bool:
    """Whether a process does not survive a task. A signal from outside says nothing of it."""
    context = multiprocessing.get_context("spawn")
    process = context.Process(target=_surviving, args=(work, task), daemon=True)
    with suppress(OSError):
        process.start()
        process.join()
    return process.exitcode not in {0, None, *_STOPPED}


def _surviving(work: _Work, task: CompileTask) -> None:
    """Run a task; what can be caught is told where the kernel is run."""
    with suppress(Exception):
        work(task)


def compile_task(task: CompileTask) -> None:
    """Compile; to be called in a process of its own."""
    from kernels.compile_only import only_compile  # noqa: PLC0415 - Triton, with a GPU only

    only_compile(task.architecture)
    operations = _operations(task)
    arena = KVArena(task.config, task.positions, task.dtype, _META)
    scratch = Scratch.allocate(*task.scratch, _META)
    forward = Forward(task.config, task.weights, arena, operations, scratch)
    for rows, is_sampled, has_logits in product(task.rows, (False, True), (False, True)):
        shape = StepShape(rows, 1, is_sampled=is_sampled, has_logits=has_logits)
        with assumed(limits_for(task.architecture)):
            forward.run(_memory(task, shape))


def _operations(task: CompileTask) -> Operations:
    own = operations_for(torch.device("cuda"), programmatic=task.is_programmatic)
    is_left_out = {name: task.only not in ("", name) for name in OPERATIONS}
    tried: dict[str, Any] = {
        name: _nothing if is_left_out[name] else partial(_tried, getattr(own, name))
        for name in OPERATIONS
    }
    return replace(own, **tried)


def _tried(operation: Callable[..., None], *arguments: object) -> None:
    """Go on behind a kernel that does not compile: it fails where it is run, too."""
    with suppress(Exception):
        operation(*arguments)


def _nothing(*_: object) -> None:
    """Stands for what is not to be compiled."""


def _task(
    forward: Forward, architecture: int, rows: tuple[int, ...], *, is_programmatic: bool
) -> CompileTask:
    weights, scratch = forward.weights, forward.scratch
    layers = tuple({layer.forms: layer for layer in weights.layers}.values())
    return CompileTask(
        config=forward.config,
        weights=without_values(replace(weights, layers=layers)),
        positions=forward.arena.keys.shape[2],
        dtype=forward.arena.keys.dtype,
        scratch=(scratch.partials.numel(), scratch.arrived.numel()),
        architecture=architecture,
        rows=rows,
        is_programmatic=is_programmatic,
    )


def without_values(held: Any) -> Any:  # noqa: ANN401 - any data class of tensors
    """The same with tensors that have shapes and types alone."""
    if isinstance(held, torch.Tensor):
        return torch.empty_strided(held.shape, held.stride(), dtype=held.dtype, device=_META)
    if isinstance(held, tuple):
        return tuple(map(without_values, held))
    if is_dataclass(held) and not isinstance(held, type):
        return replace(held, **dict(_parts(held)))
    return held


def _parts(held: Any) -> Iterator[tuple[str, Any]]:  # noqa: ANN401 - likewise
    for field in fields(held):
        yield field.name, without_values(getattr(held, field.name))


def _memory(task: CompileTask, shape: StepShape) -> StepMemory:
    """What goes in and out stays on the CPU, where copies between the two can be made."""
    config = task.config
    logits = torch.empty(shape.rows, config.vocab_size, device=_META) if shape.has_logits else None
    return StepMemory(
        shape=shape,
        inputs=Inputs(
            shape, config.num_heads // config.num_kv_heads, _CPU, task.weights.embedding.hosted
        ),
        activations=Activations(config, shape.rows, task.dtype, _CPU),
        outputs=Outputs(shape, _CPU),
        logits=logits,
    )
