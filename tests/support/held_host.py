"""A completion host as a program, whose engine has no model.

python -m tests.support.held_host echo --socket PATH --token-file FILE
python -m tests.support.held_host echo --replicas N --port PORT --token-file FILE
python -m tests.support.held_host lose --losses N --starts FILE, then what `foregram serve` takes

Completions of `echo` are digests of the text to complete. The first hosts of `lose` lose their
device at the first request.
"""

import argparse
import asyncio
import logging
import os
import sys
from functools import partial
from pathlib import Path
from typing import Any

from engine.host.options import HostOptions
from engine.host.server import HostServer
from engine.host.service import CompletionService
from tests.support.held_engine import EchoEngine, HeldEngine, LosingEngine


def load(_progress: Any) -> EchoEngine:
    return EchoEngine()


def echo(words: list[str]) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--socket", type=Path)
    parser.add_argument("--port", type=int)
    parser.add_argument("--token-file", type=Path, required=True)
    parser.add_argument("--replicas")
    given = parser.parse_args(words)
    if given.replicas:
        _replicate(given)
        return
    token = given.token_file.read_text().strip()
    asyncio.run(HostServer(CompletionService(load), HostOptions(given.socket, token=token)).serve())


def _replicate(given: argparse.Namespace) -> None:
    from engine.host.scale.plan import ReplicaPlan, replica_range, start_replicas

    logging.basicConfig(level=logging.INFO)
    count = replica_range(given.replicas)
    plan = ReplicaPlan(
        partial(CompletionService, load, "echo"), count=count, device="cpu", threads=1
    )
    start_replicas(plan, HostOptions(port=given.port, token_file=given.token_file))


def lose(words: list[str]) -> None:
    """Serve; `--starts` counts the hosts, of which `--losses` lose their device."""
    from lsp_server.cli import serve
    from lsp_server.cli.command_line import main

    parser = argparse.ArgumentParser()
    parser.add_argument("--losses", type=int, required=True)
    parser.add_argument("--starts", type=Path, required=True)
    given, options = parser.parse_known_args(words)
    with given.starts.open("a") as file:
        file.write(f"{os.getpid()} {Path.cwd()}\n")
    num_starts = len(given.starts.read_text().splitlines())
    engine: Any = LosingEngine() if num_starts <= given.losses else HeldEngine()
    module: Any = serve
    module.load_host_engine = lambda *_: engine  # loads neither a model nor torch
    sys.exit(main(["serve", *options]))


if __name__ == "__main__":
    # Ray pickles importable objects by name, and a program's own module is not importable.
    from tests.support import held_host

    {"echo": held_host.echo, "lose": held_host.lose}[sys.argv[1]](sys.argv[2:])
