"""A socket file that only its user can connect to, removed when its listener closes."""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from engine.errors import ConfigurationError

_PROBE_S = 1.0  # seconds to wait for a server on an existing socket file


@contextmanager
def listening(path: Path) -> Iterator[socket.socket]:
    """Listen on `path` while the block runs. Raises ConfigurationError."""
    listener = socket.socket(socket.AF_UNIX)
    with listener:
        try:
            if path.is_socket() and not _is_alive(path):
                path.unlink()
            _bind(listener, path)
            made = path.stat()
        except (OSError, ValueError) as error:  # ValueError: an invalid path
            reason = getattr(error, "strerror", None) or error
            raise ConfigurationError(f"cannot listen on {path}: {reason}") from error
        try:
            yield listener
        finally:
            with suppress(FileNotFoundError):
                if os.path.samestat(path.stat(), made):  # another server may have replaced it
                    path.unlink()


def identity(path: Path | None) -> tuple[int, int] | None:
    """The device and inode of a file; None if there is none."""
    try:
        found = None if path is None else path.stat()
    except OSError:
        return None
    return found and (found.st_dev, found.st_ino)


def _bind(listener: socket.socket, path: Path) -> None:
    """Bind so that the file is private from the moment it exists."""
    former = os.umask(0o177)
    try:
        listener.bind(str(path))
    finally:
        os.umask(former)
    listener.listen()


def _is_alive(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as probe, suppress(TimeoutError):
        probe.settimeout(_PROBE_S)
        try:
            probe.connect(str(path))
        except (ConnectionRefusedError, FileNotFoundError):
            return False
    return True
