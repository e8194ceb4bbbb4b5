"""Replicas as a program, without a model: completions say which text they were asked to complete.

python -m tests.support.echo_replicas --port PORT --token-file FILE --replicas N
"""

import argparse
import logging
from pathlib import Path
from typing import Any

from engine.host.options import HostOptions
from engine.host.scale.plan import ReplicaCount, ReplicaPlan, ScaleOptions, start_replicas
from tests.support.echo_host import EchoEngine


def load(_progress: Any) -> EchoEngine:
    """What each replica loads."""
    return EchoEngine()


def main() -> None:
    """Serve until told to stop."""
    logging.basicConfig(level=logging.INFO)
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--token-file", type=Path, required=True)
    parser.add_argument("--replicas", required=True)
    arguments = parser.parse_args()
    scale = ScaleOptions(ReplicaCount.parse(arguments.replicas), device="cpu", threads=1)
    plan = ReplicaPlan(load, "echo", (), "openai", is_loopback=True)
    start_replicas(plan, HostOptions(port=arguments.port, token_file=arguments.token_file), scale)


if __name__ == "__main__":
    # Ray pickles by name what can be imported, and a program's own module cannot.
    from tests.support.echo_replicas import main as imported_main

    imported_main()
