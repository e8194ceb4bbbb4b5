"""Reads files that a repository names; never waits for a pipe or device, and follows no link."""

import os
import stat
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple


def read_regular(file: Path, most_bytes: int) -> bytes:
    """Read a regular file up to `most_bytes`. Raises OSError; ValueError for an impossible name."""
    with open(file, "rb", opener=_opened) as stream:
        if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
            raise OSError(f"{file} is no regular file")
        content = stream.read(most_bytes + 1)
    if len(content) > most_bytes:
        raise OSError(f"{file} has more than {most_bytes} bytes")
    return content


def _opened(file: str, flags: int) -> int:
    return os.open(file, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY)


class FileStamp(NamedTuple):
    """Kind, time, size and inode of a file, which tell whether it changed."""

    kind: int
    modified_ns: int
    num_bytes: int
    inode: int


class Look:
    """A view of the disk that looks at each path once: to look again, make another."""

    def __init__(self) -> None:
        self.stamp = cache(partial(_stamp, os.lstat))  # of a path itself; None if nothing is there
        self.target = cache(partial(_stamp, os.stat))  # of the end of its links
        self.real = cache(_real)  # the path without links


def _stamp(status_of: Callable[[str], os.stat_result], place: str) -> FileStamp | None:
    try:
        status = status_of(place)
    except (OSError, ValueError):  # ValueError: a name that no system can hold
        return None
    kind = stat.S_IFMT(status.st_mode)
    return FileStamp(kind, status.st_mtime_ns, status.st_size, status.st_ino)


def _real(path: str) -> str:
    try:
        return os.path.realpath(path)
    except (OSError, ValueError):  # a name that no system can hold
        return path
