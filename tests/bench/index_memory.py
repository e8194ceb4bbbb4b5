"""What an index costs a language server's memory, in a process of its own that asks it.

`python -m tests.bench.index_memory` does that: lines of JSON on its input are an index, and the
cursors to ask it about.
"""

import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import msgspec

from engine.memory import resident_bytes
from lsp_server.repository.cursor_view import CursorView

_ROOT = Path(__file__).parents[2]  # where `tests` is found


@dataclass(frozen=True, slots=True)
class IndexMemory:
    """Resident memory of a language server that has begun, and of one that has asked its index."""

    before_mb: float
    after_mb: float
    num_questions: int


class _Index(msgspec.Struct, frozen=True):
    folder: str
    path: str


def measured_memory(folder: Path, index: Path, views: Iterable[CursorView]) -> IndexMemory:
    """Have another process ask the index. Raises subprocess.CalledProcessError."""
    asked = map(msgspec.json.encode, (_Index(str(folder), str(index)), *views))
    command = (sys.executable, "-m", "tests.bench.index_memory")
    pipe = subprocess.PIPE
    run = subprocess.run(command, cwd=_ROOT, input=b"\n".join(asked), stdout=pipe, check=True)
    return msgspec.json.decode(run.stdout, type=IndexMemory)


def main() -> None:
    """Be a language server, as far as its memory goes."""
    from lsp_server.server import create_server
    from lsp_server.setting_layers import Layer

    server = create_server(Layer("benchmark", {}))
    before = resident_bytes()
    num_questions = _ask(sys.stdin.buffer)
    told = IndexMemory(before / 1e6, resident_bytes() / 1e6, num_questions)
    del server  # it was there all the time
    sys.stdout.buffer.write(msgspec.json.encode(told))


def _ask(asked: BinaryIO) -> int:
    """Ask an index about each cursor; return how many there are."""
    from lsp_server.repository.retrieval import Retrieval
    from lsp_server.repository.source_files import SourceFiles
    from lsp_server.repository.store import Store

    index, count = msgspec.json.decode(asked.readline(), type=_Index), 0
    reader = Store.open(Path(index.path))
    retrieval = Retrieval(reader, SourceFiles(Path(index.folder)))
    for line in asked:
        with reader.reading():
            retrieval.shown(msgspec.json.decode(line, type=CursorView))
        count += 1
    reader.close()
    return count


if __name__ == "__main__":
    main()
