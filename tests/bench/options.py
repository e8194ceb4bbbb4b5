"""Options that several benchmarks have."""

import argparse

from lsp_server.cli.command_parser import positive


def add_seed(parser: argparse.ArgumentParser, purpose: str) -> None:
    """What draws by chance draws the same again."""
    told = f"{purpose}; 1 by default"
    parser.add_argument("--seed", metavar="S", type=int, default=1, help=told)


def add_positions(parser: argparse.ArgumentParser) -> None:
    """How many places of files, and which."""
    told = "use N cursor positions; 300 by default"
    parser.add_argument("--count", metavar="N", type=positive, default=300, help=told)
    add_seed(parser, "choose the positions by this seed")
