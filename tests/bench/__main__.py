"""`python -m tests.bench NAME`: what only developers measure, each in its file `NAME_bench.py`."""

import argparse
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from importlib import import_module

from lsp_server.cli import command_line
from lsp_server.cli.command_parser import Command, CommandParser, add_commands

_BENCHMARKS = {  # by name: purpose, and an example of arguments
    "replay": (
        "decode real insertions and edits beside llama.cpp",
        "insertions.jsonl --count 20 --compare llama-cpp",
    ),
    "edits": (
        "measure next edits in recorded scenarios, or edits asked for in the functions of wheels",
        "wheels --count 12 --compare llama-cpp",
    ),
    "fim": ("score fill-in-the-middle tasks", "tasks.jsonl.gz --count 50 --layout line"),
    "crossfile": ("score how much other files help", "crossfile.jsonl --count 20"),
    "forms": ("measure what quantized weights cost in quality", "insertions.jsonl --count 16"),
    "oracle": (
        "measure drafting alone, with the target as the model",
        "insertions.jsonl --count 20",
    ),
    "gpu": (
        "time the operations of a step on a GPU, or replays with the human's text as output",
        "insertions.jsonl --shapes 0.5b --count 8",
    ),
    "suggestions": (
        "record what is suggested where a script is the model, and compare with a recording",
        "src --count 2000 --against before.jsonl",
    ),
    "syntax": ("tell whether files parse once suggestions are accepted", "insertions.jsonl"),
    "lsp": ("measure what an editor sees of the language server", "--model offline"),
    "typing": (
        "measure what a simulated person gains who types real insertions",
        "insertions.jsonl --count 10",
    ),
    "thresholds": (
        "compare limits of confidence by a person who types beside recorded answers",
        "insertions.jsonl --count 20 --recordings recorded.jsonl",
    ),
    "load": (
        "measure a host while ever more simulated people type at once",
        "--local --people 1,4,16 --duration 30",
    ),
}


def build_parser() -> argparse.ArgumentParser:
    """Return the parser; it stores the benchmark's name. Settings are those of `foregram bench`."""
    parser = CommandParser(
        prog="python -m tests.bench",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Measure what only developers need to know.",
        epilog="example:\n  python -m tests.bench load --tiny --people 1,4",
    )
    parser.set_defaults(command="bench")
    add_commands(parser, "benchmark", _commands(), package="tests.bench")
    return parser


def _commands() -> Iterator[Command]:
    for name, (purpose, example) in _BENCHMARKS.items():
        yield Command(name, purpose, example, partial(_add_options, name), f"{name}_bench:bench")


def _add_options(name: str, parser: argparse.ArgumentParser) -> None:
    import_module(f"tests.bench.{name}_bench").add_options(parser)


def main(argv: Sequence[str] | None = None) -> int:
    """Run a benchmark and return its exit status. Failures are reported as in the product."""
    return command_line.main(argv, make_parser=build_parser)


if __name__ == "__main__":
    sys.exit(main())
