"""`python -m tests.bench replay`: the product's, beside llama.cpp."""

import argparse

from lsp_server.cli.bench import bench_replay
from lsp_server.cli.bench_arguments import add_replay
from lsp_server.settings import Settings
from tests.bench.peers import add_peers, compared


def add_options(parser: argparse.ArgumentParser) -> None:
    """What the command line takes."""
    add_replay(parser)
    add_peers(parser)


def bench(arguments: argparse.Namespace, settings: Settings) -> None:
    """Decode a replay set."""
    bench_replay(arguments, settings, compared(arguments, settings))
