"""What a step takes, against the bytes that it has to read."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from engine.bench.gpu.cases import Cases, Lab
from engine.bench.gpu.machine import Bandwidth, Machine
from engine.bench.gpu.shapes import Shape, drafted_tree, random_arena, random_weights
from engine.model.causal_lm import StepInput
from engine.model.gpu.batch_layout import SlotRange
from engine.model.gpu.buffers import StepShape
from engine.model.gpu.launches import Launch
from engine.model.gpu.loading import assemble
from engine.model.gpu.qwen2 import GpuQwen2
from kernels.operations import operations_for

_SPARE = 256  # arena positions behind the longest context


@dataclass(frozen=True, slots=True)
class StepTime:
    """One step. The floor is the time to read its weights, and the keys and values of its text."""

    shape: str
    quantization: str
    rows: int
    context: int
    bytes: int
    floor_ms: float
    step_ms: float
    floor_over_step: float


@dataclass(frozen=True, slots=True)
class Programmatic:
    """A step whose kernels start before the ones ahead of them have ended, and one without."""

    shape: str
    rows: int
    context: int
    off_ms: float
    on_ms: float


def measure_steps(
    lab: Lab, shapes: Sequence[Shape], cases: Sequence[tuple[int, int]]
) -> Cases[StepTime]:
    """Time steps of these rows and contexts, one model in memory at a time."""
    bandwidth = lab.bandwidth
    timed = ((shape.full_name, _time(lab, bandwidth, shape, cases)) for shape in shapes)
    return lab.cases("timing steps", len(shapes) * len(cases), timed)


def _time(
    lab: Lab, bandwidth: Bandwidth, shape: Shape, cases: Sequence[tuple[int, int]]
) -> Iterator[StepTime]:
    model = lab.model(shape, max(context for _, context in cases) + _SPARE)
    for rows, context in cases:
        num_bytes = step_bytes(model, context)
        floor, took = bandwidth.floor_ms(num_bytes), step_ms(lab.machine, model, rows, context)
        yield StepTime(
            shape=shape.name,
            quantization=shape.quantization_name,
            rows=rows,
            context=context,
            bytes=num_bytes,
            floor_ms=floor,
            step_ms=took,
            floor_over_step=floor / took,
        )


def step_bytes(model: GpuQwen2, context: int) -> int:
    """What a step behind `context` tokens has to read: each weight, key and value once."""
    return model.graphs.forward.weights.read_bytes + context * model.arena.bytes_per_position


def step_ms(machine: Machine, model: GpuQwen2, rows: int, context: int) -> float:
    """Duration on the device of a step of `rows` rows behind `context` tokens, both copies included."""
    launch = packed_launch(model, rows, context)
    with model.graphs.on_stream():
        return machine.ms(launch.start)


def packed_launch(model: GpuQwen2, rows: int, context: int) -> Launch:
    """A step that is ready to run at the beginning of the arena."""
    launch = model.graphs.launch(StepShape(rows, 1))
    inputs = launch.memory.inputs
    inputs.pack([StepInput(SlotRange(base=0, length=context), drafted_tree(rows))])
    return launch


def measure_programmatic(
    lab: Lab, shape: Shape, cases: Sequence[tuple[int, int]]
) -> tuple[Programmatic, ...]:
    """Time steps with programmatic dependent launch off and on, over the same weights."""
    machine = lab.machine
    weights = random_weights(shape, machine)
    longest = max(context for _, context in cases)
    arena = random_arena(shape.config, longest + _SPARE, machine)
    off, on = (
        assemble(
            shape.config,
            weights,
            arena,
            machine.dtype,
            operations_for(machine.device, programmatic=programmatic),
        )
        for programmatic in (False, True)
    )
    return tuple(
        Programmatic(
            shape=shape.name,
            rows=rows,
            context=context,
            off_ms=step_ms(machine, off, rows, context),
            on_ms=step_ms(machine, on, rows, context),
        )
        for rows, context in cases
    )
