"""Time steps, compared with the bytes that they read, and prompts to their first token."""

import statistics
import timeit
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from engine.bench.gpu.machine import Machine
from engine.bench.gpu.shapes import Shape, trusted_model
from engine.learning import drafted_tree
from engine.model.causal_lm import StepInput, prefill, run_step
from engine.model.gpu.arena import rounded
from engine.model.gpu.buffers import StepShape
from engine.model.gpu.launches import Launch
from engine.model.gpu.qwen2 import GpuQwen2
from engine.model.token_tree import MAX_ROWS, TokenTree
from engine.progress import Progress, counted

SPARE = 256  # arena positions after the longest context: twice the most rows of a step
_PROMPTS_EACH = 5  # timed prompts of each length


@dataclass(frozen=True, slots=True)
class StepTime:
    """One step. The floor is the time to read its weights, keys and values."""

    model: str
    rows: int
    context: int
    bytes: int
    floor_ms: float
    step_ms: float
    floor_over_step: float


@dataclass(frozen=True, slots=True)
class Prefill:
    """The time from a prompt's token ids to the first new one, without cached keys."""

    model: str
    prompt_tokens: int
    rows_of_a_piece: int
    ms: float


def measure_steps(
    machine: Machine, progress: Progress, shape: Shape, cases: Sequence[tuple[int, int]]
) -> Iterator[StepTime]:
    """Time steps of these rows and contexts."""
    model = trusted_model(shape, max(context for _, context in cases) + SPARE, machine)
    for rows, context in counted(progress, f"timing steps of {shape.full_name}", cases):
        num_bytes = step_bytes(model, context)
        floor, took = machine.floor_ms(num_bytes), step_ms(machine, model, rows, context)
        yield StepTime(shape.full_name, rows, context, num_bytes, floor, took, floor / took)


def measure_prefill(
    machine: Machine, progress: Progress, shape: Shape, lengths: Sequence[int]
) -> Iterator[Prefill]:
    """Time prompts of random tokens."""
    model = trusted_model(shape, rounded(max(lengths) + MAX_ROWS), machine)
    for length in counted(progress, f"reading prompts by {shape.full_name}", lengths):
        yield Prefill(shape.full_name, length, model.most_read_rows, _median_ms(model, length))


def step_bytes(model: GpuQwen2, context: int) -> int:
    """Return the bytes that a step after `context` tokens reads: weights, keys and values once."""
    return model.graphs.forward.weights.read_bytes + context * model.arena.bytes_per_position


def step_ms(machine: Machine, model: GpuQwen2, rows: int, context: int) -> float:
    """Time a step of `rows` rows after `context` tokens on the device, with both copies."""
    launch = packed_launch(model, rows, context)
    with model.graphs.on_stream():
        return machine.ms(launch.start)


def packed_launch(model: GpuQwen2, rows: int, context: int) -> Launch:
    """Return a step ready to run after `context` tokens of the arena."""
    launch = model.graphs.launch(StepShape(rows, 1))
    slot = model.new_slot(context + rows)
    slot.length = context
    launch.memory.inputs.pack([StepInput(slot, drafted_tree(np.arange(1, rows + 1)))])
    return launch


def _median_ms(model: GpuQwen2, length: int) -> float:
    ids = np.random.default_rng(length).integers(model.vocab_size, size=length).tolist()
    slot = model.new_slot(length + MAX_ROWS)

    def read() -> None:
        slot.truncate(0)
        prefill(model, slot, ids[:-1])
        run_step(model, StepInput(slot, TokenTree.chain(ids[-1:])))

    _, *times = timeit.repeat(read, number=1, repeat=_PROMPTS_EACH + 1)  # the first may capture
    return 1000 * statistics.median(times)
