"""`foregram bench`: the command line's words become calls of `engine.bench`, its reports output."""

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from typing import Any

from rich.console import Console, RenderableType

from engine import Lookahead, Sampling
from engine.bench.fim import FimOptions, run_fim
from engine.bench.fim_tasks import load_fim_tasks
from engine.bench.measured import Bench
from engine.bench.oracle import Oracle, load_tokenizer
from engine.bench.oracle_report import oracle_json, oracle_table
from engine.bench.peers import PeerOptions, opened_peers
from engine.bench.plots import ReplayPicture
from engine.bench.pool import measure_pool
from engine.bench.replay import ReplayOptions, run_replay
from engine.bench.replay_items import ReplayItem, load_replay_items
from engine.bench.report import Setting, fim_json, fim_tables, replay_json, replay_tables
from engine.engine import Engine
from lsp_server.loading import load_engine
from lsp_server.settings import Settings
from lsp_server.terminal import ItemsBar, ProgressBars


def bench_replay(arguments: argparse.Namespace, settings: Settings) -> None:
    """Decode a replay set with lookahead off and on, or let its targets play the model."""
    items = load_replay_items(arguments.file, arguments.count)
    if arguments.oracle:
        _bench_oracle(items, arguments, settings)
        return
    options = ReplayOptions(
        max_tokens=arguments.max_tokens,
        layout=arguments.layout,
        lookahead=Lookahead.parse(arguments.lookahead),
        sampling=Sampling(temperature=arguments.temperature, seed=arguments.seed),
        stops_by_rules=arguments.stop_rules,
    )
    picture = ReplayPicture(arguments.plot) if arguments.plot else None
    with (
        closing(load_engine(arguments, settings)) as engine,
        _bench(engine, arguments, settings) as bench,
        ItemsBar("items") as bar,
    ):
        report = run_replay(bench, items, options, bar.show)
    setting = _setting(engine, arguments)
    _print(arguments, replay_json(report, setting), replay_tables(report, setting))
    if picture:
        picture.draw(report)


def bench_fim(arguments: argparse.Namespace, settings: Settings) -> None:
    """Complete and score fill-in-the-middle tasks."""
    tasks = load_fim_tasks(arguments.file, arguments.count, mid_line_only=arguments.mid_line)
    options = FimOptions(
        max_tokens=arguments.max_tokens,
        layout=arguments.layout,
        lookahead=Lookahead.parse(arguments.lookahead),
        sampling=Sampling(temperature=arguments.temperature, seed=arguments.seed),
    )
    with (
        closing(load_engine(arguments, settings)) as engine,
        _bench(engine, arguments, settings) as bench,
        ItemsBar("tasks") as bar,
    ):
        report = run_fim(bench, tasks, options, bar.show)
    setting = _setting(engine, arguments)
    _print(arguments, fim_json(report, setting), fim_tables(report, setting))


def bench_pool(arguments: argparse.Namespace, _settings: Settings) -> None:
    """Measure the n-gram pool alone."""
    figures = measure_pool(arguments.tokens)
    _print(arguments, figures.as_json(), figures.table())


def _bench_oracle(
    items: Sequence[ReplayItem], arguments: argparse.Namespace, settings: Settings
) -> None:
    progress = ProgressBars(Console(stderr=True))
    model = arguments.model or settings.model
    oracle = Oracle(load_tokenizer(model, settings.cache_folder, progress))
    with ItemsBar("items") as bar:
        scores = oracle.run(items, bar.show)
    _print(arguments, oracle_json(scores), oracle_table(scores))


@contextmanager
def _bench(engine: Engine, arguments: argparse.Namespace, settings: Settings) -> Iterator[Bench]:
    if not arguments.compare:
        yield Bench(engine)
        return
    options = PeerOptions(
        names=tuple(dict.fromkeys(arguments.compare)),
        model=arguments.model or settings.model,
        threads=settings.threads,
    )
    with opened_peers(options, ProgressBars(Console(stderr=True))) as peers:
        yield Bench(engine, peers)


def _setting(engine: Engine, arguments: argparse.Namespace) -> Setting:
    info = engine.info
    return Setting(
        model=info.model,
        device=info.device,
        dtype=info.dtype,
        max_tokens=arguments.max_tokens,
        layout=arguments.layout,
        lookahead=arguments.lookahead,
        temperature=arguments.temperature,
        seed=arguments.seed,
    )


def _print(
    arguments: argparse.Namespace, answer: Mapping[str, Any], tables: RenderableType
) -> None:
    if arguments.json:
        sys.stdout.write(json.dumps(answer) + "\n")
    else:
        Console().print(tables)


BENCHMARKS = {"fim": bench_fim, "pool": bench_pool, "replay": bench_replay}
