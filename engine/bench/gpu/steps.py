"""What a step takes, against the bytes that it has to read, and a prompt to its first token."""

import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from engine.bench.gpu.lab import Cases, Lab
from engine.bench.gpu.machine import Machine
from engine.bench.gpu.shapes import Shape, drafted_tree
from engine.model.causal_lm import StepInput, prefill, run_step
from engine.model.gpu.arena import rounded
from engine.model.gpu.buffers import StepShape
from engine.model.gpu.launches import Launch
from engine.model.gpu.qwen2 import GpuQwen2
from engine.model.token_tree import MAX_ROWS, TokenTree

SPARE = 256  # arena positions behind the longest context
_PROMPTS_EACH = 5  # of a length


@dataclass(frozen=True, slots=True)
class StepTime:
    """One step. The floor is the time to read its weights, and the keys and values of its text."""

    model: str
    rows: int
    context: int
    bytes: int
    floor_ms: float
    step_ms: float
    floor_over_step: float


@dataclass(frozen=True, slots=True)
class Prefill:
    """From token ids to the first token's id, with nothing of the prompt cached."""

    model: str
    prompt_tokens: int
    rows_of_a_piece: int
    ms: float


def measure_steps(lab: Lab, shapes: Sequence[Shape], cases: Sequence[tuple[int, int]]) -> Cases:
    """Time steps of these rows and contexts, one model in memory at a time."""
    lab.floor_ms(0)  # fails here where no floor is known
    timed = ((shape.full_name, _steps(lab, shape, cases)) for shape in shapes)
    return lab.cases("timing steps", len(shapes) * len(cases), timed)


def measure_prefill(lab: Lab, shapes: Sequence[Shape], lengths: Sequence[int]) -> Cases:
    """Time prompts of random tokens."""
    timed = ((shape.full_name, _prompts(lab, shape, lengths)) for shape in shapes)
    return lab.cases("reading prompts", len(shapes) * len(lengths), timed)


def step_bytes(model: GpuQwen2, context: int) -> int:
    """What a step behind `context` tokens has to read: each weight, key and value once."""
    return model.graphs.forward.weights.read_bytes + context * model.arena.bytes_per_position


def step_ms(machine: Machine, model: GpuQwen2, rows: int, context: int) -> float:
    """Duration on the device of a step of `rows` rows behind `context` tokens, both copies included."""
    launch = packed_launch(model, rows, context)
    with model.graphs.on_stream():
        return machine.ms(launch.start)


def packed_launch(model: GpuQwen2, rows: int, context: int) -> Launch:
    """A step that is ready to run behind so many tokens of the arena."""
    launch = model.graphs.launch(StepShape(rows, 1))
    inputs = launch.memory.inputs
    slot = model.new_slot(context + rows)
    slot.length = context
    inputs.pack([StepInput(slot, drafted_tree(rows))])
    return launch


def _steps(lab: Lab, shape: Shape, cases: Sequence[tuple[int, int]]) -> Iterator[StepTime]:
    model = lab.model(shape, max(context for _, context in cases) + SPARE)
    for rows, context in cases:
        num_bytes = step_bytes(model, context)
        floor, took = lab.floor_ms(num_bytes), step_ms(lab.machine, model, rows, context)
        yield StepTime(shape.full_name, rows, context, num_bytes, floor, took, floor / took)


def _prompts(lab: Lab, shape: Shape, lengths: Sequence[int]) -> Iterator[Prefill]:
    model = lab.model(shape, rounded(max(lengths) + MAX_ROWS))
    for length in lengths:
        yield Prefill(shape.full_name, length, model.most_read_rows, _median_ms(model, length))


def _median_ms(model: GpuQwen2, length: int) -> float:
    ids = np.random.default_rng(length).integers(model.vocab_size, size=length).tolist()
    slot, times = model.new_slot(length + MAX_ROWS), []
    for _ in range(_PROMPTS_EACH + 1):
        slot.truncate(0)
        began = time.perf_counter()
        prefill(model, slot, ids[:-1])
        run_step(model, StepInput(slot, TokenTree.chain(ids[-1:])))
        times.append(1000 * (time.perf_counter() - began))
    return statistics.median(times[1:])  # the first may capture
