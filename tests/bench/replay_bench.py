"""`python -m tests.bench replay`: the product's, beside other engines or with the targets as the model."""

import argparse
from pathlib import Path
from tempfile import TemporaryDirectory

from engine.bench.forced import forced_replay
from engine.bench.plots import Picture
from engine.bench.task_sets import load_replay_items
from engine.bench.tokenizer import load_tokenizer
from engine.errors import ConfigurationError
from engine.options import wanted_model
from lsp_server.cli.bench_arguments import add_replay
from lsp_server.cli.decoding_bench import bench_replay, setting_of, show_replay
from lsp_server.cli.engine_arguments import decoding
from lsp_server.cli.engine_loading import engine_options
from lsp_server.cli.terminal import ProgressBars, print_figures, tracked
from lsp_server.settings import Settings
from tests.bench.oracle import Oracle
from tests.bench.oracle_score import oracle_json, oracle_table
from tests.bench.peers import add_peers, compared


def add_options(parser: argparse.ArgumentParser) -> None:
    """What the command line takes."""
    add_replay(parser)
    add_peers(parser)
    parser.add_argument(
        "--oracle",
        action="store_true",
        help="score drafting alone: the target stands in for the model, and no model runs",
    )
    parser.add_argument(
        "--oracle-forced",
        action="store_true",
        help="run the model's steps in full, but make it write the target",
    )


def bench(arguments: argparse.Namespace, settings: Settings) -> None:
    """Decode a replay set, or let its targets play the model."""
    if arguments.oracle:
        _bench_oracle(arguments, settings)
    elif arguments.oracle_forced:
        _bench_forced(arguments, settings)
    else:
        bench_replay(arguments, settings, compared(arguments, settings))


def _bench_oracle(arguments: argparse.Namespace, settings: Settings) -> None:
    items = load_replay_items(arguments.file, arguments.count)
    model = arguments.model or settings.model
    oracle = Oracle(load_tokenizer(model, settings.cache_folder, ProgressBars()))
    scores = oracle.run(tracked(items, "items"))
    print_figures(arguments, oracle_json(scores), oracle_table(scores))


def _bench_forced(arguments: argparse.Namespace, settings: Settings) -> None:
    """Have the model say the targets. What it learns of them is no user's, and is forgotten."""
    if arguments.compare:
        raise ConfigurationError("--oracle-forced has no peers to --compare: they say their own")
    picture = Picture(arguments.plot) if arguments.plot else None
    items = load_replay_items(arguments.file, arguments.count)
    options, progress = engine_options(arguments, settings), ProgressBars()
    with TemporaryDirectory(prefix="foregram-") as folder:
        model = wanted_model(options, progress)
        replay = forced_replay(model, options, Path(folder), progress)
        report = replay.run(tracked(items, "items"), decoding(arguments))
    show_replay(report, setting_of(arguments, replay.engine), arguments, picture)
