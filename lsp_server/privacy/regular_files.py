"""Reads files whose names a repository chooses: it waits for no pipe or device, and follows no link."""

import os
import stat
from pathlib import Path


class UnusableFileError(Exception):
    """No file of ordinary kind and size."""


def read_regular(file: Path, most_bytes: int) -> bytes:
    """Read a whole file. Raises UnusableFileError, OSError, or ValueError for an impossible name."""
    opened = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY)
    with os.fdopen(opened, "rb") as stream:
        if not stat.S_ISREG(os.fstat(opened).st_mode):
            raise UnusableFileError
        content = stream.read(most_bytes + 1)
    if len(content) > most_bytes:
        raise UnusableFileError
    return content
