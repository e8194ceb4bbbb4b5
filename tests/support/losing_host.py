"""`foregram serve` as a program, with an engine that loses its device in the first hosts started.

python -m tests.support.losing_host --losses N --starts FILE, then what `serve` takes
"""

import argparse
import os
import sys
from pathlib import Path
from typing import Any

from engine.engine import Engine
from engine.errors import DeviceLostError
from lsp_server.cli.command_line import main
from tests.support.running_host import HeldEngine

FAULT = "the device cuda:0 is lost: CUDA error: unknown error"


class LosingEngine(HeldEngine):
    """Loses its device once it is asked for anything."""

    def completing(self, *_: Any, **__: Any) -> Any:
        raise DeviceLostError(FAULT)


def serve() -> int:
    """Serve; `--starts` counts the hosts, and `--losses` of them lose their device."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--losses", type=int, required=True)
    parser.add_argument("--starts", type=Path, required=True)
    arguments, options = parser.parse_known_args()
    with arguments.starts.open("a") as file:
        file.write(f"{os.getpid()} {Path.cwd()}\n")
    num_starts = len(arguments.starts.read_text().splitlines())
    engine: Any = LosingEngine() if num_starts <= arguments.losses else HeldEngine()
    Engine.load = lambda *_: engine  # type: ignore[method-assign] # it needs no model
    return main(["serve", *options])


if __name__ == "__main__":
    sys.exit(serve())
