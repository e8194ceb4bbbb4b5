"""`foregram bench replay` and `step`: how fast text is decoded, and where a step's time goes."""

import argparse
from collections.abc import Mapping
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import replace
from functools import partial

from engine.bench.measured import Bench, Peer
from engine.bench.plots import Picture, draw_replay, draw_steps
from engine.bench.replay import ReplayReport, replay_json, replay_tables, run_replay
from engine.bench.report import Setting
from engine.bench.requests import without_rules
from engine.bench.step import (
    MachineLimits,
    cases,
    int8_model,
    measure_steps,
    steps_json,
    steps_table,
)
from engine.bench.task_sets import load_replay_items
from engine.engine import Engine
from engine.options import wanted_model
from lsp_server.cli.engine_arguments import decoding
from lsp_server.cli.engine_loading import engine_options, load_engine
from lsp_server.cli.terminal import ProgressBars, print_figures, tracked
from lsp_server.settings import Settings


def bench_replay(
    arguments: argparse.Namespace,
    settings: Settings,
    peers: AbstractContextManager[Mapping[str, Peer]] | None = None,
) -> None:
    """Decode a replay set with lookahead off and on, and by the peers."""
    items = load_replay_items(arguments.file, arguments.count)
    picture = Picture(arguments.plot) if arguments.plot else None
    wanted = decoding(arguments)
    if not arguments.stop_rules:
        stop = without_rules(arguments.max_tokens)
        wanted = replace(wanted, stop=replace(stop, min_confidence=arguments.min_confidence))
    with (
        closing(load_engine(arguments, settings, ProgressBars())) as engine,
        peers or nullcontext({}) as opened,
    ):
        report = run_replay(Bench(engine, opened), tracked(items, "items"), wanted)
    show_replay(report, setting_of(arguments, engine, opened), arguments, picture)


def setting_of(
    arguments: argparse.Namespace, engine: Engine, peers: Mapping[str, Peer] | None = None
) -> Setting:
    """Where and how an engine was measured that these options had load and decode."""
    chosen = ("max_tokens", "layout", "lookahead", "temperature", "seed", "min_confidence")
    info = engine.info
    return Setting(
        *(info.model, info.device, info.dtype),
        **{name: getattr(arguments, name) for name in chosen},
        builds={name: peer.build for name, peer in (peers or {}).items()},
    )


def show_replay(
    report: ReplayReport, setting: Setting, arguments: argparse.Namespace, picture: Picture | None
) -> None:
    """Print a replay's figures, and draw them where that was asked for."""
    print_figures(arguments, replay_json(report, setting), replay_tables(report, setting))
    if picture:
        picture.save(partial(draw_replay, report))


def bench_step(arguments: argparse.Namespace, settings: Settings) -> None:
    """Measure where a step's time goes on this processor."""
    picture = Picture(arguments.plot) if arguments.plot else None
    loaded = wanted_model(engine_options(arguments, settings), ProgressBars())
    model = int8_model(loaded.causal_lm)
    times = list(measure_steps(model, tracked(cases(), "steps")))
    limits = MachineLimits.measure(model.weights)
    print_figures(arguments, steps_json(times, limits), steps_table(times, limits))
    if picture:
        picture.save(partial(draw_steps, times, limits))
