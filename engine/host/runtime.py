"""The folder of a user's local host, with its socket, lock, record, token and log."""

import fcntl
import os
import secrets
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import BinaryIO, Self

import msgspec

from engine.atomic_write import atomic_write, read_kept
from engine.errors import ForegramError

MAX_SOCKET_PATH = 103  # bytes; macOS takes 104 with the closing zero, Linux 108
MAX_LOG_BYTES = 1_000_000  # size at which a log is rotated


@dataclass(frozen=True, slots=True)
class LogFile:
    """A host's log, and the end of its predecessor."""

    path: Path

    def opened(self) -> BinaryIO:
        """Open the log for appending, readable by its user alone."""
        return open(self.path, "ab", opener=partial(os.open, mode=0o600))

    def rotate(self) -> None:
        """Move a long log's content to a file `.1`. Writers may go on, as they append."""
        with suppress(FileNotFoundError):
            if self.path.stat().st_size <= MAX_LOG_BYTES:
                return
            former_path = self.path.with_name(f"{self.path.name}.1")
            with self.path.open("rb") as log, atomic_write(former_path) as former:
                log.seek(-MAX_LOG_BYTES, os.SEEK_END)
                former.write(log.read(MAX_LOG_BYTES))
            os.truncate(self.path, 0)

    def read(self, lines: int) -> list[str]:
        """Return the last `lines` lines of the log."""
        with suppress(FileNotFoundError), self.path.open("rb") as file:
            file.seek(max(0, self.path.stat().st_size - MAX_LOG_BYTES))
            text = file.read().decode("utf-8", "replace")
            return text.splitlines()[-lines:] if lines > 0 else []
        return []


class RuntimeFolderError(ForegramError):
    """The runtime folder, or a token in it, is unusable or not private to the user."""

    code = "runtime_folder"
    exit_status = 4


class HostRecord(msgspec.Struct, frozen=True, rename="camel"):
    """The host started last, as stored in `host.json`."""

    pid: int
    started_at: float  # this and `failed_at` in seconds since boot
    failed_at: float | None = None  # when its death was noticed
    failures: int = 0  # consecutive hosts that died, including this one once noticed
    has_served: bool = False  # long enough not to count as a failed start
    version: str = ""  # foregram's
    crashed: str = ""  # the last version whose host died before `has_served`


def new_secret() -> str:
    """Return a random token."""
    return secrets.token_urlsafe(32)


def default_runtime_folder(environ: Mapping[str, str]) -> Path:
    """Return `foregram` in the session's runtime folder, or else the user's folder under /tmp."""
    session = environ.get("XDG_RUNTIME_DIR")
    if session and Path(session).is_absolute() and Path(session).is_dir():
        return Path(session) / "foregram"
    # Not TMPDIR: each shell with its own TMPDIR would start another host.
    return Path("/tmp") / f"foregram-{os.getuid()}"  # noqa: S108 - checked to be ours when opened


class RuntimeFolder:
    """A folder that only its user can access. Create it with `open`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.socket_path = path / "host.sock"  # the host listens there
        self.lock_path = path / "host.lock"  # a process must hold its lock to start a host
        self.record_path = path / "host.json"  # of the last host, which locks it while it lives
        self.token_path = path / "token"  # of the local host and its clients
        self.log = LogFile(path / "host.log")  # the host's output

    @classmethod
    def open(cls, path: Path) -> Self:
        """Create the folder, or check an existing one. Raises RuntimeFolderError."""
        folder = cls(path)
        longest = len(os.fsencode(folder.socket_path))
        if longest > MAX_SOCKET_PATH:
            raise RuntimeFolderError(
                f"the runtime folder {path} is too long for a socket ({longest} bytes, at most "
                f"{MAX_SOCKET_PATH}); FOREGRAM_RUNTIME names another"
            )
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with suppress(FileExistsError):
                path.mkdir(mode=0o700)
            _check_private(path, stat.S_ISDIR)
        except OSError as error:
            raise RuntimeFolderError(
                f"the runtime folder {path} cannot be made: {error.strerror}"
            ) from error
        return folder

    def port_token(self, address: str, port: int) -> str | None:
        """Return the token of the user's host on a local port, if there is one."""
        with suppress(FileNotFoundError):
            return _token_in(self._port_token_path(address, port))
        return None

    def keep_port_token(self, address: str, port: int, token: str) -> Path:
        """Write a port's token to its file, replacing that of a killed host. Raises OSError."""
        path = self._port_token_path(address, port)
        with atomic_write(path) as file:
            file.write(f"{token}\n".encode())
        return path

    def _port_token_path(self, address: str, port: int) -> Path:
        return self.path / f"token-{address}-{port}"

    def token(self) -> str:
        """Return the token, creating it on the first call. Raises RuntimeFolderError."""
        path = self.token_path
        try:
            if not path.is_symlink() and not path.exists():
                self._make_secret(path)
            if not (token := _token_in(path)):
                path.unlink()
                self._make_secret(path)
                token = _token_in(path)
            return token
        except OSError as error:
            reason = f"the token {path} cannot be written or read: {error.strerror}"
            raise RuntimeFolderError(reason) from error

    def _make_secret(self, path: Path) -> None:
        with NamedTemporaryFile(dir=self.path, buffering=0) as draft:
            draft.write(f"{new_secret()}\n".encode())
            # A link appears with its content complete, and fails if another process was first.
            with suppress(FileExistsError):
                path.hardlink_to(draft.name)

    @contextmanager
    def claimed_record(self) -> Iterator[int]:
        """Lock the record and yield its descriptor; the host inherits both until it dies."""
        descriptor = os.open(self.record_path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield descriptor
        finally:
            os.close(descriptor)

    def host_is_alive(self) -> bool:
        """Whether its host still locks the record; a process number could belong to another."""
        with suppress(FileNotFoundError), self.record_path.open("rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
        return False

    def write_record(self, record: HostRecord) -> None:
        """Write `record` to the file that the host has locked."""
        self.record_path.write_bytes(msgspec.json.encode(record))

    def read_record(self) -> HostRecord | None:
        """Return the last host; None if none was started or it was stopped."""
        return read_kept(self.record_path, HostRecord)

    def forget_host(self) -> None:
        """Remove the socket and the record of a host that is gone."""
        self.socket_path.unlink(missing_ok=True)
        self.record_path.unlink(missing_ok=True)


def _token_in(path: Path) -> str:
    """Return the token in a private file; "" if it is damaged. Raises OSError."""
    _check_private(path, stat.S_ISREG)
    token = path.read_text("ascii", errors="replace").strip()
    return token if token.isascii() and token.isprintable() else ""


def _check_private(path: Path, is_kind: Callable[[int], bool]) -> None:
    found = path.lstat()
    if not is_kind(found.st_mode):
        what = "a symbolic link" if stat.S_ISLNK(found.st_mode) else "of the wrong kind"
        raise RuntimeFolderError(f"{path} is {what}; remove it, or set FOREGRAM_RUNTIME")
    if found.st_uid != os.getuid():
        raise RuntimeFolderError(f"{path} belongs to another user; set FOREGRAM_RUNTIME")
    if stat.S_IMODE(found.st_mode) & 0o077:
        fitting = "700" if stat.S_ISDIR(found.st_mode) else "600"
        raise RuntimeFolderError(f"{path} is open to other users; run: chmod {fitting} {path}")
