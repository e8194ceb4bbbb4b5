"""`foregram bench`: how fast text is decoded, what a step takes, what a GPU does."""

import argparse
from contextlib import closing

from engine.bench.measured import run_replay
from engine.bench.report import Setting, plain, replay_json, replay_tables
from engine.bench.step import CONTEXTS, measure_steps, steps_table
from engine.bench.task_sets import load_replay_items
from engine.model.device import require_torch
from lsp_server.cli.engine_arguments import decoding, load_engine
from lsp_server.cli.terminal import ProgressBars, print_figures, tracked
from lsp_server.settings import Settings


def bench_replay(arguments: argparse.Namespace, settings: Settings) -> None:
    """Decode a replay set with lookahead off and on."""
    items = load_replay_items(arguments.file, arguments.count)
    wanted = decoding(arguments)
    with closing(load_engine(arguments, settings, ProgressBars())) as engine:
        runs = run_replay(engine, tracked(items, "items"), wanted)
        setting = Setting(engine.info, wanted)
    print_figures(arguments, replay_json(runs, setting), replay_tables(runs, setting))


def bench_step(arguments: argparse.Namespace, settings: Settings) -> None:
    """Measure what steps of the model take here."""
    with closing(load_engine(arguments, settings, ProgressBars())) as engine:
        times = [*measure_steps(engine.model.causal_lm, tracked(CONTEXTS, "contexts"))]
        print_figures(arguments, {"steps": plain(times)}, steps_table(times, engine.info))


def bench_gpu(arguments: argparse.Namespace, _settings: Settings) -> None:
    """Measure a GPU, or only check its kernels. Raises ForegramError."""
    require_torch("measuring a GPU")
    from lsp_server.cli.bench_gpu import check_gpu, measure_gpu  # noqa: PLC0415 - it loads torch

    (check_gpu if arguments.check else measure_gpu)(arguments)
