"""The benchmarks of `foregram bench`: their options and defaults. It runs nothing."""

import argparse
from pathlib import Path

from lsp_server.cli.command_parser import Command, CommandParser, add_commands, add_json, positive
from lsp_server.cli.engine_arguments import add_decoding, add_model

GPU_DTYPES = ("bfloat16", "fp8", "int4")


def add_benchmarks(bench: CommandParser) -> None:
    """`args.benchmark` says which one was asked for."""
    add_commands(bench, "benchmark", _BENCHMARKS)


def add_replay(parser: argparse.ArgumentParser) -> None:
    """What a replay decodes, and how."""
    add_replay_set(parser)
    add_model(parser)
    add_decoding(parser, max_tokens=64)
    add_json(parser)


def add_replay_set(parser: argparse.ArgumentParser) -> None:
    """What is decoded, and how much of it."""
    parser.add_argument("file", metavar="FILE.jsonl", type=Path, help="a replay set")
    parser.add_argument("--count", type=positive, help="only the first COUNT items")


def _add_step(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    add_json(parser)


def _add_gpu(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "sets",
        metavar="SET.jsonl",
        type=Path,
        nargs="*",
        help="replay sets; the model is made to write their text",
    )
    parser.add_argument(
        "--count",
        metavar="N",
        type=positive,
        help="items of each kind in the sets; 30 by default, 8 with --quick",
    )
    parser.add_argument(
        "--shapes",
        metavar="NAMES",
        help="models with random weights: 0.5b,1.5b,7b,32b; all of them by default, 0.5b,7b with "
        "--profile",
    )
    parser.add_argument("--quick", action="store_true", help="only 0.5b, and few of everything")
    only = parser.add_mutually_exclusive_group()
    only.add_argument(
        "--check",
        action="store_true",
        help="only check that the kernels are right here, and a row the same whatever is beside it; "
        "PREFIX.json is a report to send us: it names no file of yours",
    )
    only.add_argument(
        "--profile",
        action="store_true",
        help="measure only where a step's time goes, operation by operation",
    )
    parser.add_argument(
        "--tokenizer",
        metavar="DIR",
        type=Path,
        help="a folder with a tokenizer.json for the sets; the offline model's by default",
    )
    parser.add_argument(
        "--dtype", choices=GPU_DTYPES, help="how weights are held; bfloat16 by default"
    )
    parser.add_argument(
        "--save",
        metavar="PREFIX",
        type=Path,
        default=Path("gpu-bench"),
        help="write PREFIX.json after every section; gpu-bench by default",
    )
    parser.add_argument(
        "--plot",
        metavar="FILE.png",
        type=Path,
        help="draw the steps' times by their rows, and their floors",
    )
    add_json(parser)


_BENCHMARKS = (
    Command(
        "replay",
        "decode real insertions and edits, with lookahead and without",
        "insertions.jsonl --count 20",
        add_replay,
        "bench:bench_replay",
    ),
    Command(
        "step",
        "measure what a step takes on this processor",
        "--json",
        _add_step,
        "bench:bench_step",
    ),
    Command(
        "gpu",
        "check an NVIDIA GPU's kernels, and measure steps, prompts and replays",
        "insertions.jsonl --quick",
        _add_gpu,
        "bench:bench_gpu",
    ),
)
