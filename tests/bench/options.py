"""An option that several benchmarks have."""

import argparse


def add_seed(parser: argparse.ArgumentParser, purpose: str) -> None:
    """What draws by chance draws the same again."""
    told = f"{purpose}; 1 by default"
    parser.add_argument("--seed", metavar="S", type=int, default=1, help=told)
