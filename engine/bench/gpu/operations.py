"""Where a step's time goes: its operations, each alone, on what the step gives them."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any, NamedTuple

from engine.bench.gpu.lab import Cases, Lab
from engine.bench.gpu.shapes import Shape
from engine.bench.gpu.steps import SPARE, packed_launch
from engine.model.gpu.forward import Forward, StepMemory
from kernels.operations import Operations
from kernels.weight import Weight

_KINDS = 9  # of a step: its eight operations, one of which has two products
_LOOKED_UP = "embed_rows"  # reads rows of its weight


class Kind(NamedTuple):
    """An operation and its weight, outputs and inputs, or "" where there is none.

    `bytes` are of its weight, or of the keys and values that it reads.
    """

    operation: str
    weight: str
    bytes: int


@dataclass(frozen=True, slots=True)
class OperationTime:
    """What a launch takes, and the share of the bandwidth that it reads its bytes with."""

    operation: str
    weight: str
    bytes: int
    rows: int
    context: int
    launches: int
    us: float
    share_of_bandwidth: float


Calls = dict[Kind, list[Callable[[], None]]]


def measure_operations(lab: Lab, shape: Shape, cases: Sequence[tuple[int, int]]) -> Cases:
    """Time all launches of an operation in steps of these rows and contexts, one after the other."""
    lab.floor_ms(0)  # fails here where no floor is known
    timed = [(shape.full_name, _times(lab, shape, cases))]
    return lab.cases("timing the operations", _KINDS * len(cases), timed)


def _times(lab: Lab, shape: Shape, cases: Sequence[tuple[int, int]]) -> Iterator[OperationTime]:
    model = lab.model(shape, max(context for _, context in cases) + SPARE)
    for rows, context in cases:
        launch = packed_launch(model, rows, context)
        launch.start()  # zeros would run faster than what it leaves
        launch.wait()
        with model.graphs.on_stream():
            kinds = _calls(model.graphs.forward, launch.memory, context)
        for kind, calls in kinds.items():
            us = lab.machine.us_per_launch(partial(_run, calls), len(calls))
            share = 1000 * lab.floor_ms(kind.bytes) / us
            yield OperationTime(*kind, rows, context, len(calls), us, share)


def _run(calls: Sequence[Callable[[], None]]) -> None:
    for call in calls:
        call()


def _calls(forward: Forward, memory: StepMemory, context: int) -> Calls:
    """What a step calls, by kind, noted and not run."""
    calls: Calls = defaultdict(list)
    layer_bytes = context * forward.arena.bytes_per_position // forward.config.num_layers

    def noting(name: str) -> Callable[..., None]:
        def note(*arguments: object) -> None:
            kind = _kind(name, arguments, layer_bytes)
            calls[kind].append(partial(getattr(forward.operations, name), *arguments))

        return note

    noted: dict[str, Any] = {
        one.name: noting(one.name) for one in fields(Operations) if one.name != "asks_host"
    }
    replace(forward, operations=replace(forward.operations, **noted)).run(memory)
    return calls


def _kind(name: str, arguments: tuple[object, ...], layer_bytes: int) -> Kind:
    weight = next((one for one in arguments if isinstance(one, Weight)), None)
    if weight is None or name == _LOOKED_UP:
        return Kind(name, "", layer_bytes if name == "batch_attention" else 0)
    return Kind(name, f"{weight.num_outputs} x {weight.num_inputs}", weight.num_bytes)
