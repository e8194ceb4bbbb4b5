"""Files that are written whole or not at all, and read only if they are whole."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, TypeVar

import msgspec

T = TypeVar("T")
_MOST_BYTES = 10_000_000  # our own files are smaller
_PREFIX = 16  # characters of a name, as a draft's is longer and file systems take 255 bytes


@contextmanager
def atomic_write(path: Path) -> Iterator[BinaryIO]:
    """Yield a file that replaces `path` if the block succeeds. Raises OSError naming `path`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, draft = tempfile.mkstemp(dir=path.parent, prefix=path.name[:_PREFIX])
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
        Path(draft).replace(path)
    except OSError as error:
        if error.errno is not None and error.filename in (None, draft):
            error.filename, error.filename2 = str(path), None
        raise
    finally:
        Path(draft).unlink(missing_ok=True)


def read_kept(path: Path, kind: type[T]) -> T | None:
    """Decode a JSON file; None if it is missing, damaged or of another version."""
    try:
        with path.open("rb") as file:
            return msgspec.json.decode(file.read(_MOST_BYTES), type=kind)
    except (OSError, ValueError, RecursionError):  # ValueError: msgspec's, or bad UTF-8
        return None
