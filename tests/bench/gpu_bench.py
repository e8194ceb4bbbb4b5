"""Steps of random weights on a GPU: each operation alone, or replays with the human's text as output."""

import argparse
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import torch

from engine.bench.gpu.machine import Machine, Work
from engine.bench.gpu.run import Sections, Sizes, bandwidth, of_each
from engine.bench.gpu.shapes import Shape, parse_shapes, trusted_model
from engine.bench.gpu.steps import SPARE, packed_launch
from engine.bench.task_sets import load_replay_items
from engine.model.gpu.forward import Forward, StepMemory
from engine.model.gpu.quantization import gpu_quantization
from engine.progress import Progress, counted
from kernels.operations import OPERATIONS
from kernels.weight import Weight
from lsp_server.cli import command_parser
from lsp_server.cli.bench_gpu import run_sections
from lsp_server.settings import Settings
from tests.bench.forced_replay import measure_replays, read_tokenizer
from tests.bench.tasks import grouped

_ROWS, _CONTEXT = (1, 8, 32, 128), 2048  # of the steps whose operations are timed
_OPTIONS = {
    "[sets SET.jsonl ...]": "replay sets, whose text the model is made to write; without any, "
    "operations are timed",
    "--count N =30": "items of each kind in the sets; 30 by default",
    "--shapes NAMES =0.5b,7b": "models with random weights: 0.5b,1.5b,7b,32b; 0.5b,7b by default",
    "--tokenizer DIR": "a folder with a tokenizer.json for the sets; the offline model's by default",
    "--dtype bfloat16|fp8|int4": "how weights are held; bfloat16 by default",
    "--save PREFIX =gpu-bench": "write PREFIX.json after every section; gpu-bench by default",
}


def add_options(parser: argparse.ArgumentParser) -> None:
    command_parser.add_options(parser, _OPTIONS | command_parser.JSON)


def bench(arguments: argparse.Namespace, settings: Settings) -> None:
    shapes = parse_shapes(arguments.shapes, gpu_quantization(arguments.dtype))
    items = [item for path in arguments.sets for item in load_replay_items(path)]
    kinds = grouped(items, lambda item: item.kind).values()
    replay = partial(
        measure_replays,
        items=[item for kind in kinds for item in kind[: arguments.count]],
        read_tokenizer=partial(read_tokenizer, arguments.tokenizer, settings.cache_folder),
    )
    sections = of_each(shapes, "replay", replay) if items else operation_sections(shapes)
    run_sections(arguments, Machine.gpu(), sections)


def operation_sections(shapes: Sequence[Shape]) -> Sections:
    measure = partial(measure_operations, cases=[(rows, _CONTEXT) for rows in _ROWS])
    return {
        "bandwidth": partial(bandwidth, numbers=Sizes().numbers),
        **of_each(shapes, "operations", measure),
    }


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
    machine: Machine, progress: Progress, shape: Shape, cases: Sequence[tuple[int, int]]
) -> Iterator[OperationTime]:
    """Time all launches of each operation in steps of these rows and contexts."""
    model = trusted_model(shape, max(context for _, context in cases) + SPARE, machine)
    title = f"timing the operations of {shape.full_name}"
    for rows, context in counted(progress, title, cases):
        launch = packed_launch(model, rows, context)
        launch.start()  # leaves real data; zeros would run faster
        launch.wait()
        with model.graphs.on_stream():
            kinds = _calls(model.graphs.forward, launch.memory, context)
        for kind, calls in kinds.items():
            us = 1000 * captured_ms(machine, partial(_run, calls)) / len(calls)
            share = 1000 * machine.floor_ms(kind.bytes) / us
            yield OperationTime(*kind, rows, context, len(calls), us, share)


def captured_ms(machine: Machine, work: Work) -> float:
    """Time work as one launch, without the host's time between its kernels."""
    if not machine.is_gpu:
        return machine.ms(work)
    work()  # compiles its kernels
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    # A failed capture leaves its own stream as the current one.
    with torch.cuda.stream(torch.cuda.current_stream()), torch.cuda.graph(graph):
        work()
    return machine.ms(graph.replay)


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
