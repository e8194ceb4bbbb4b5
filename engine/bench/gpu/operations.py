"""Time each operation of a step alone, on the step's own data."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

from engine.bench.gpu.lab import Lab
from engine.bench.gpu.shapes import Shape
from engine.bench.gpu.steps import SPARE, packed_launch
from engine.model.gpu.forward import Forward, StepMemory
from engine.progress import counted
from kernels.operations import OPERATIONS
from kernels.weight import Weight


class Kind(NamedTuple):
    """An operation and its weight, outputs and inputs, or "" without a weight.

    `bytes` is the size of its weight, or of the keys and values that it reads.
    """

    operation: str
    weight: str
    bytes: int


@dataclass(frozen=True, slots=True)
class OperationTime:
    """The time of a launch, and its share of the memory bandwidth."""

    operation: str
    weight: str
    bytes: int
    rows: int
    context: int
    launches: int
    us: float
    share_of_bandwidth: float


def measure_operations(
    lab: Lab, shape: Shape, cases: Sequence[tuple[int, int]]
) -> Iterator[OperationTime]:
    """Time all launches of each operation in steps of these rows and contexts."""
    model = lab.model(shape, max(context for _, context in cases) + SPARE)
    title = f"timing the operations of {shape.full_name}"
    for rows, context in counted(lab.progress, title, cases):
        launch = packed_launch(model, rows, context)
        launch.start()  # leaves real data; zeros would run faster
        launch.wait()
        with model.graphs.on_stream():
            kinds = _calls(model.graphs.forward, launch.memory, context)
        for kind, calls in kinds.items():
            us = 1000 * lab.machine.captured_ms(partial(_run, calls)) / len(calls)
            share = 1000 * lab.floor_ms(kind.bytes) / us
            yield OperationTime(*kind, rows, context, len(calls), us, share)


def _run(calls: Sequence[Callable[[], None]]) -> None:
    for call in calls:
        call()


def _calls(
    forward: Forward, memory: StepMemory, context: int
) -> dict[Kind, list[Callable[[], None]]]:
    """Record the calls of a step by kind, without running them."""
    calls: dict[Kind, list[Callable[[], None]]] = defaultdict(list)
    layer_bytes = context * forward.arena.bytes_per_position // forward.config.num_layers

    def note(name: str, *arguments: object) -> None:
        call = partial(getattr(forward.operations, name), *arguments)
        calls[_kind(name, arguments, layer_bytes)].append(call)

    noted: dict[str, Any] = {name: partial(note, name) for name in OPERATIONS}
    replace(forward, operations=replace(forward.operations, **noted)).run(memory)
    return calls


def _kind(name: str, arguments: tuple[object, ...], layer_bytes: int) -> Kind:
    weight = next((one for one in arguments if isinstance(one, Weight)), None)
    if weight is None or name == "embed_rows":  # reads only a few rows of its weight
        return Kind(name, "", layer_bytes if name == "batch_attention" else 0)
    return Kind(name, f"{weight.num_outputs} x {weight.num_inputs}", weight.num_bytes)
