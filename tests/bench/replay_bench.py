"""`python -m tests.bench replay`: the product beside llama.cpp, on the same weights and prompts."""

import argparse
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from rich.console import Group
from rich.table import Table

from engine.bench.figures import Speed
from engine.bench.measured import Measured, measure, request_for
from engine.bench.report import (
    Setting,
    figure_table,
    plain,
    replay_json,
    replay_tables,
    speed_cells,
)
from engine.bench.task_sets import ReplayItem, load_replay_items
from engine.engine import Engine
from engine.errors import ConfigurationError
from engine.model_names import SMALLEST_MODEL
from engine.request import CompletionRequest, Cost
from lsp_server.cli import command_parser
from lsp_server.cli.arguments import REPLAY
from lsp_server.cli.bench import bench_replay
from lsp_server.cli.engine_arguments import decoding, load_engine
from lsp_server.cli.terminal import ProgressBars, print_figures, tracked
from lsp_server.settings import Settings
from tests.bench import llama_cpp
from tests.bench.llama_cpp import Peer

_CONTEXT = 4096  # tokens of the longest prompt with its answer


def add_options(parser: argparse.ArgumentParser) -> None:
    add_peer_options(parser)
    command_parser.add_options(parser, REPLAY)


def add_peer_options(parser: argparse.ArgumentParser) -> None:
    told = "also run this engine on the same weights"
    parser.add_argument("--compare", choices=("llama-cpp",), help=told)
    server = {
        "--llama-server PATH": "the llama.cpp to compare with, built for this machine, instead of a "
        "wheel's"
    }
    command_parser.add_options(parser, server)


def check_peer_options(arguments: argparse.Namespace) -> None:
    if arguments.llama_server and not arguments.compare:
        raise ConfigurationError("--llama-server says which llama.cpp: add --compare llama-cpp")


def bench(arguments: argparse.Namespace, settings: Settings) -> None:
    check_peer_options(arguments)
    if not arguments.compare:
        bench_replay(arguments, settings)
        return
    items, wanted = load_replay_items(arguments.file, arguments.count), decoding(arguments)
    model = arguments.model = arguments.model or settings.model or SMALLEST_MODEL
    with (
        closing(load_engine(arguments, settings, ProgressBars())) as engine,
        llama_cpp_peers(model, arguments.llama_server) as peers,
    ):
        runs, compared = run_beside(engine, peers, tracked(items, "items"), wanted)
        setting = Setting(engine.info, wanted)
    figures = {
        name: {kind: peer_figures(some) for kind, some in kinds.items()}
        for name, kinds in compared.items()
    }
    builds = {name: peer.build for name, peer in peers.items()}
    told = replay_json(runs, setting) | {"peers": plain(figures), "builds": builds}
    print_figures(arguments, told, Group(replay_tables(runs, setting), _table(builds, figures)))


Compared = dict[str, list[tuple[Cost, Cost]]]  # ours and a peer's, by kind of item


@dataclass(frozen=True, slots=True)
class PeerFigures:
    """A peer's speed, and ours with lookahead relative to it, on the same items."""

    speed: Speed
    on_over_peer: float


def run_beside(
    engine: Engine,
    peers: Mapping[str, Peer],
    items: Iterable[ReplayItem],
    wanted: CompletionRequest,
) -> tuple[dict[str, list[Measured]], dict[str, Compared]]:
    """Measure items like the product; by peer also our and its costs for as many tokens.

    A peer's first token belongs to its prefill, so it is never asked for a single one.
    """
    runs: dict[str, list[Measured]] = {}
    compared: dict[str, Compared] = {name: {} for name in peers}
    for item, run in measure(engine, items, partial(request_for, decoding=wanted)):
        runs.setdefault(item.kind, []).append(run)
        if (tokens := run.on.cost.tokens) > 1:
            ids = engine.laid_out(request_for(item, wanted))[0].ids
            for name, peer in peers.items():
                costs = run.on.cost, peer.decode(ids, tokens)
                compared[name].setdefault(item.kind, []).append(costs)
    return runs, compared


def peer_figures(compared: Sequence[tuple[Cost, Cost]]) -> PeerFigures:
    ours, theirs = (Speed.of(costs) for costs in zip(*compared, strict=True))
    return PeerFigures(theirs, ours.over(theirs))


def _table(builds: Mapping[str, str], figures: Mapping[str, Mapping[str, PeerFigures]]) -> Table:
    numbers = ("tokens/s", "ms p50", "ms p95", "on / this")
    caption = "\n".join(f"{name}: {build}" for name, build in builds.items())
    table = figure_table(["peer", "kind"], numbers, title="beside llama.cpp", caption=caption)
    for name, kinds in figures.items():
        for kind, one in kinds.items():
            table.add_row(name, kind, *speed_cells(one.speed), f"{one.on_over_peer:.2f}")
    return table


@contextmanager
def llama_cpp_peers(model: str, program: Path | None) -> Iterator[Mapping[str, Peer]]:
    """Yield llama.cpp with a model's weights: the server `program` once for each way to draft.

    Without one it is the wheel's, which drafts nothing.
    """
    with llama_cpp.gguf_file(model, ProgressBars()) as file, ExitStack() as stack:
        if program is None:
            yield {"llama.cpp": llama_cpp.wheel(file, _CONTEXT)}
            return
        yield {
            name: stack.enter_context(llama_cpp.server(program, file, _CONTEXT, flags))
            for name, flags in llama_cpp.SPECULATIONS.items()
        }
