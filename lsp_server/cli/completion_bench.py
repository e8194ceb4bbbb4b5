"""Benchmarks of completions: what the engine writes at real cursors, how well and how fast."""

import argparse
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict, replace
from functools import partial
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

from engine.bench.crossfile import ARMS, Retrieved, crossfile_json, crossfile_table, run_crossfile
from engine.bench.fim import fim_json, fim_tables, run_fim
from engine.bench.forced import load_forced
from engine.bench.measured import Bench
from engine.bench.oracle import Oracle, load_tokenizer
from engine.bench.oracle_score import oracle_json, oracle_table
from engine.bench.peers import opened_peers
from engine.bench.plots import Picture, draw_replay
from engine.bench.replay import ReplayReport, replay_json, replay_tables, run_replay
from engine.bench.report import Setting
from engine.bench.requests import without_rules
from engine.bench.task_sets import (
    CrossfileTask,
    ReplayItem,
    load_crossfile_tasks,
    load_fim_tasks,
    load_replay_items,
)
from engine.engine import Engine
from engine.errors import ConfigurationError
from engine.model_names import DEFAULT_MODEL
from engine.request import Buffer, Snippet
from lsp_server.cli.code_places import mid_line_places
from lsp_server.cli.engine_arguments import decoding
from lsp_server.cli.engine_loading import engine_options, load_engine
from lsp_server.cli.syntax_bench import measure_syntax
from lsp_server.cli.terminal import ProgressBars, print_figures, tracked
from lsp_server.repository.cursor_view import CursorView
from lsp_server.repository.filling import Filling
from lsp_server.repository.retrieval import Retrieval
from lsp_server.repository.source_files import SourceFiles
from lsp_server.repository.store import Store
from lsp_server.settings import Settings


def bench_replay(arguments: argparse.Namespace, settings: Settings) -> None:
    """Decode a replay set with lookahead off and on, or let its targets play the model."""
    items = load_replay_items(arguments.file, arguments.count)
    if arguments.oracle:
        _bench_oracle(items, arguments, settings)
        return
    picture = Picture(arguments.plot) if arguments.plot else None
    replayed = _forced if arguments.oracle_forced else _replayed
    report, setting = replayed(items, arguments, settings)
    print_figures(arguments, replay_json(report, setting), replay_tables(report, setting))
    if picture:
        picture.save(partial(draw_replay, report))


def bench_fim(arguments: argparse.Namespace, settings: Settings) -> None:
    """Complete and score fill-in-the-middle tasks."""
    tasks = load_fim_tasks(arguments.file, arguments.count, mid_line_only=arguments.mid_line)
    with _engine(arguments, settings) as engine, _bench(engine, arguments, settings) as bench:
        runs = run_fim(bench, tracked(tasks, "tasks"), decoding(arguments))
    setting = _setting(engine, arguments, bench)
    print_figures(arguments, fim_json(runs, setting), fim_tables(runs, setting))


def bench_syntax(arguments: argparse.Namespace, settings: Settings) -> None:
    """Count the suggestions inside lines of real files that leave code broken."""
    places = mid_line_places(arguments.paths, arguments.count, arguments.seed)
    if not places:
        raise ConfigurationError("no file among these has a grammar and a call, list or signature")
    with _engine(arguments, settings) as engine:
        figures = measure_syntax(engine, tracked(places, "places"), settings.min_confidence)
    print_figures(arguments, asdict(figures), figures.table())


def bench_crossfile(arguments: argparse.Namespace, settings: Settings) -> None:
    """Complete tasks with no other file, with those that a person would have open, and with others.

    The prompt is as long as a host on this machine would have it, unless somebody says otherwise.
    """
    trees = arguments.trees or arguments.file.parent / "trees"
    tasks = load_crossfile_tasks(arguments.file, trees, arguments.count, arguments.stratum)
    arms = arguments.arms or ARMS
    cases = tracked(
        [*product(tasks, ["none", *(arm for arm in arms if arm != "none")])], "completions"
    )
    with _engine(arguments, settings) as engine, ExitStack() as closing_all:
        folder = Path(closing_all.enter_context(TemporaryDirectory(prefix="foregram-")))
        index = _CrossfileIndex(folder, closing_all)
        wanted = decoding(arguments)
        runs = [run_crossfile(engine, task, arm, wanted, index.retrieve) for task, arm in cases]
    setting = _setting(engine, arguments)
    print_figures(arguments, crossfile_json(runs, setting), crossfile_table(runs, setting))


class _CrossfileIndex:
    """One index a tree, made when it is first asked for, in a folder of its own."""

    def __init__(self, folder: Path, closing: ExitStack) -> None:
        self._folder, self._closing = folder, closing
        self._retrievals: dict[Path, Retrieval] = {}

    def retrieve(self, task: CrossfileTask, opened: tuple[Buffer, ...]) -> Retrieved:
        """What the index shows for a task, of files that are not open and not its own."""
        if task.root not in self._retrievals:
            self._retrievals[task.root] = self._filled(task.root)
        view = CursorView(task.path, task.prefix.split("\n"), task.suffix.split("\n"))
        began = time.perf_counter()
        shown = self._retrievals[task.root].shown(view, frozenset(one.path for one in opened))
        ms = 1000 * (time.perf_counter() - began)
        return Retrieved(tuple(Snippet(one.path, one.text, is_open=False) for one in shown), ms)

    def _filled(self, root: Path) -> Retrieval:
        store = Store.build(self._folder / f"{len(self._retrievals)}.sqlite", root)
        self._closing.callback(store.close)
        files = SourceFiles(root)
        Filling(store, files).scan()
        return Retrieval(store, files)


def _bench_oracle(
    items: Sequence[ReplayItem], arguments: argparse.Namespace, settings: Settings
) -> None:
    model = arguments.model or settings.model
    oracle = Oracle(load_tokenizer(model, settings.cache_folder, ProgressBars()))
    scores = oracle.run(tracked(items, "items"))
    print_figures(arguments, oracle_json(scores), oracle_table(scores))


def _replayed(
    items: Sequence[ReplayItem], arguments: argparse.Namespace, settings: Settings
) -> tuple[ReplayReport, Setting]:
    wanted = decoding(arguments)
    if not arguments.stop_rules:
        stop = without_rules(arguments.max_tokens)
        wanted = replace(wanted, stop=replace(stop, min_confidence=arguments.min_confidence))
    with _engine(arguments, settings) as engine, _bench(engine, arguments, settings) as bench:
        report = run_replay(bench, tracked(items, "items"), wanted)
    return report, _setting(engine, arguments, bench)


def _forced(
    items: Sequence[ReplayItem], arguments: argparse.Namespace, settings: Settings
) -> tuple[ReplayReport, Setting]:
    """Have the model say the targets. What it learns of them is no user's, and is forgotten."""
    if arguments.compare:
        raise ConfigurationError("--oracle-forced has no peers to --compare: they say their own")
    wanted = decoding(arguments)
    with TemporaryDirectory(prefix="foregram-") as folder:
        replay = load_forced(engine_options(arguments, settings), Path(folder), ProgressBars())
        report = replay.run(tracked(items, "items"), wanted)
    return report, _setting(replay.engine, arguments)


def _engine(arguments: argparse.Namespace, settings: Settings) -> "closing[Engine]":
    return closing(load_engine(arguments, settings, ProgressBars()))


@contextmanager
def _bench(engine: Engine, arguments: argparse.Namespace, settings: Settings) -> Iterator[Bench]:
    """The engine beside the peers that it is compared to."""
    if arguments.llama_server and "llama-cpp" not in arguments.compare:
        raise ConfigurationError("--llama-server says which llama.cpp: add --compare llama-cpp")
    if not arguments.compare:
        yield Bench(engine)
        return
    model = arguments.model or settings.model or DEFAULT_MODEL
    own = arguments.llama_server
    with opened_peers(arguments.compare, model, ProgressBars(), llama_server=own) as peers:
        yield Bench(engine, peers)


def _setting(engine: Engine, arguments: argparse.Namespace, bench: Bench | None = None) -> Setting:
    chosen = ("max_tokens", "layout", "lookahead", "temperature", "seed", "min_confidence")
    info = engine.info
    return Setting(
        *(info.model, info.device, info.dtype),
        **{name: getattr(arguments, name) for name in chosen},
        builds={name: peer.build for name, peer in bench.peers.items()} if bench else {},
    )
