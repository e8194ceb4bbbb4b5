"""foregram on a slower machine: each step of its model takes FACTOR times as long.

    python -P tests/bench/slowed.py FACTOR lsp --stdio

The language server that it starts starts hosts of the same kind. Between a step and its end nobody
computes, so the language server is as quick as ever.
"""

import sys
import time
from collections.abc import Callable

import numpy as np

from engine.host.runtime import RuntimeFolder
from kernels.cpu_forward import ForwardInput, Runner
from lsp_server.cli import main
from lsp_server.host import daemon
from lsp_server.settings import Settings

Run = Callable[[Runner, np.ndarray, ForwardInput], None]


def slowed(run: Run, factor: float) -> Run:
    """Return a step that takes `factor` times as long as `run`."""

    def step(runner: Runner, embeddings: np.ndarray, work: ForwardInput) -> None:
        began = time.perf_counter()
        run(runner, embeddings, work)
        time.sleep((factor - 1) * (time.perf_counter() - began))

    return step


def _become(factor: str) -> None:
    command_of = daemon.serve_command

    def serve_command(settings: Settings, folder: RuntimeFolder) -> list[str]:
        options = command_of(settings, folder)
        return [sys.executable, "-P", __file__, factor, *options[options.index("serve") :]]

    daemon.serve_command = serve_command
    Runner.run = slowed(Runner.run, float(factor))  # type: ignore[assignment,method-assign]  # it becomes slower


if __name__ == "__main__":
    _become(sys.argv.pop(1))
    sys.exit(main())
