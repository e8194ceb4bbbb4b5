"""The words of `foregram bench`: its benchmarks, their options and defaults. It runs nothing."""

import argparse
from pathlib import Path

from lsp_server.cli.command_parser import CommandParser, add_command, positive
from lsp_server.cli.engine_arguments import add_decoding, add_device, add_model

PEERS = ("llama-cpp", "transformers")
GPU_DTYPES = ("bfloat16", "fp8", "int4")


def add_benchmarks(bench: argparse.ArgumentParser) -> None:
    """`args.benchmark` says which one was asked for."""
    kinds = bench.add_subparsers(
        dest="benchmark", metavar="BENCHMARK", required=True, parser_class=CommandParser
    )
    _add_replay(
        add_command(
            kinds,
            "replay",
            "decode real insertions and edits, on and off",
            example="foregram bench replay insertions.jsonl --count 20",
        )
    )
    _add_fim(
        add_command(
            kinds,
            "fim",
            "score fill-in-the-middle tasks",
            example="foregram bench fim tasks.jsonl.gz --count 50 --layout line",
        )
    )
    _add_crossfile(
        add_command(
            kinds,
            "crossfile",
            "score what open files are worth",
            example="foregram bench crossfile crossfile.jsonl --count 20",
        )
    )
    _add_forms(
        add_command(
            kinds,
            "forms",
            "what weights of fewer bits cost in quality",
            example="foregram bench forms insertions.jsonl --count 16",
        )
    )
    _add_pool(
        add_command(
            kinds,
            "pool",
            "size and speed of the n-gram pool, without a model",
            example="foregram bench pool --tokens 1000000",
        )
    )
    _add_syntax(
        add_command(
            kinds,
            "syntax",
            "whether suggestions inside lines of real files leave the code whole",
            example="foregram bench syntax src --count 300",
        )
    )
    _add_gpu(
        add_command(
            kinds,
            "gpu",
            "every figure of an NVIDIA GPU in one run",
            example="foregram bench gpu insertions.jsonl --quick",
        )
    )
    _add_lsp(
        add_command(
            kinds,
            "lsp",
            "what an editor sees of the language server",
            example="foregram bench lsp --model offline",
        )
    )


def _add_lsp(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", metavar="NAME", help="of the host that is started")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead")


def _add_syntax(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("paths", metavar="PATH", type=Path, nargs="+", help="files, and folders")
    parser.add_argument("--count", metavar="N", type=positive, default=300, help="so many places")
    parser.add_argument("--seed", metavar="S", type=int, default=1, help="chooses the places")
    add_model(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object instead")


def _add_gpu(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "sets", metavar="SET.jsonl", type=Path, nargs="*", help="replay sets, whose text is forced"
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
        help="models of random weights, all of them by default: 0.5b,1.5b,7b,32b",
    )
    parser.add_argument("--quick", action="store_true", help="0.5b alone, and few of everything")
    parser.add_argument(
        "--profile",
        action="store_true",
        help="instead: where a step's time goes, kernel by kernel, of 0.5b and 7b by default",
    )
    parser.add_argument(
        "--tokenizer",
        metavar="DIR",
        type=Path,
        help="a folder with a tokenizer.json for the sets; the offline model's by default",
    )
    group = parser.add_argument_group("a real model")
    group.add_argument("--model", metavar="NAME", help="also measure this one in its own words")
    group.add_argument("--dtype", choices=GPU_DTYPES, help="how its weights are held")
    group.add_argument(
        "--chat", metavar="TASKS.jsonl.gz", type=Path, help="tasks whose problems it is asked about"
    )
    parser.add_argument(
        "--save",
        metavar="PREFIX",
        type=Path,
        default=Path("gpu-bench"),
        help="write PREFIX.json after every section, PREFIX.png at the end; gpu-bench by default",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object instead")


def _add_replay(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE.jsonl", type=Path, help="a replay set")
    parser.add_argument("--count", type=positive, help="only the first COUNT items")
    parser.add_argument(
        "--oracle",
        action="store_true",
        help="score drafting alone: the target plays the model, no model runs",
    )
    parser.add_argument(
        "--oracle-forced",
        action="store_true",
        help="run the model's steps in full, but have it say the target",
    )
    add_model(parser)
    add_decoding(parser, max_tokens=64)
    parser.add_argument(
        "--no-stop-rules",
        dest="stop_rules",
        action="store_false",
        help="let end tokens and --max-tokens alone end a completion",
    )
    _add_report(parser)
    parser.add_argument(
        "--plot", metavar="FILE.png", type=Path, help="draw tokens per step and speed-up per item"
    )


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
        "--trees", metavar="DIR", type=Path, help="the packages' files; `trees` beside the set"
    )
    parser.add_argument("--count", type=positive, help="only COUNT tasks of each stratum")
    parser.add_argument("--stratum", metavar="NAME", help="only cross_file or random_line tasks")
    parser.add_argument(
        "--prompt-tokens",
        metavar="N",
        type=positive,
        help="the longest prompt; by default as a host on this machine has it",
    )
    add_model(parser)
    add_decoding(parser, max_tokens=96)
    parser.add_argument("--json", action="store_true", help="print one JSON object instead")


def _add_forms(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE.jsonl", type=Path, help="a replay set")
    parser.add_argument("--count", type=positive, help="only the first COUNT items")
    parser.add_argument("--model", metavar="NAME", help="the embedded offline model by default")
    add_device(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object instead")


def _add_pool(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--tokens",
        metavar="N",
        type=positive,
        default=10_000_000,
        help="how many the pool holds; 10,000,000 by default",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object instead")


def _add_report(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print one JSON object instead")
    parser.add_argument(
        "--compare",
        choices=PEERS,
        action="append",
        default=[],
        help="run a peer on the same weights and items, in the same run",
    )
