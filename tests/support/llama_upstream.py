"""A real llama.cpp server with the embedded model, as a program of its own."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from engine.offline_parts import OFFLINE_MODELS, find_parts, join_parts
from engine.progress import Progress


def joined_offline_model(folder: Path) -> Path:
    model, path = OFFLINE_MODELS["offline"], folder / "offline.gguf"
    with path.open("wb") as target:
        join_parts(model, find_parts(model), target, Progress())
    return path


@contextmanager
def llama_upstream(model: Path) -> Iterator[str]:
    """Serve a .gguf file until the block ends; yield the server's address."""
    command = [sys.executable, "-P", __file__, str(model)]
    with (
        (model.parent / "llama.log").open("wb") as log,
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
        ) as process,
    ):
        assert process.stdout is not None
        try:
            lines = iter(process.stdout.readline, "")
            found = (line.split()[-1] for line in lines if line.startswith("serving "))
            address = next(found, None)
            assert address, Path(log.name).read_text("utf-8", "replace")[-2000:]
            yield address
        finally:
            process.kill()


def main() -> None:
    """Serve `argv[1]` from the xllamacpp wheel, with two slots of 4,096 tokens, until stdin ends.

    On one thread: several would busy-wait for each other, which is slow on a busy machine.
    """
    xllamacpp: Any = import_module("xllamacpp")
    parameters = xllamacpp.CommonParams()
    parameters.model.path = sys.argv[1]
    parameters.n_ctx = 8192
    parameters.n_parallel = 2
    parameters.port = 0
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = 1
    parameters.cache_ram_mib = 0
    parameters.endpoint_props = True
    server = xllamacpp.Server(parameters)
    sys.stdout.write(f"serving {server.listening_address}\n")
    sys.stdout.flush()
    sys.stdin.read()


if __name__ == "__main__":
    main()
