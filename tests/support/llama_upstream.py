"""A real llama.cpp server with the embedded model, in a process of its own."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from engine.offline_parts import OFFLINE_MODELS, find_parts, join_parts
from engine.progress import Progress

_PROGRAM = Path(__file__).with_name("llama_program.py")


def joined_offline_model(folder: Path) -> Path:
    model, path = OFFLINE_MODELS["offline"], folder / "offline.gguf"
    with path.open("wb") as target:
        join_parts(model, find_parts(model), target, Progress())
    return path


@contextmanager
def llama_upstream(model: Path) -> Iterator[str]:
    """Serve a .gguf file until the block ends; yield the server's address."""
    command = [sys.executable, "-P", str(_PROGRAM), str(model)]
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
