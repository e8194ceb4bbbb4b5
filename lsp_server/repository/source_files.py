"""The files of a folder that may be indexed: text, not hidden, not too large, not installed."""

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath

from lsp_server.privacy.hidden_files import HiddenFiles, path_filter
from lsp_server.privacy.regular_files import read_regular
from lsp_server.privacy.secret_texts import LONGEST_LINE, secrets_in
from lsp_server.repository.store import Stamp

MAX_BYTES = 2**20
_MOST_NAMES = 500_000  # names in one walk; a folder with more is no repository
_FOREIGN = frozenset({"__pycache__", "bower_components", "node_modules", "site-packages", "venv"})
# Endings of files that are not read: binary, or text that nobody wrote.
_ENDINGS = (
    "7z a avi bin bmp bz2 class dll dylib exe gguf gif gz ico jar jpeg jpg lock map mo mp3 mp4 npy "
    "npz o otf parquet pdf pkl png pt pyc pyd safetensors so sqlite svg tar tgz ttf wasm webp whl "
    "woff woff2 xz zip zst sqlite-journal sqlite-shm sqlite-wal"
)
_UNREAD = frozenset(f".{ending}" for ending in _ENDINGS.split(" "))
_VENV = "pyvenv.cfg"  # in a folder of installed packages


class SourceFiles:
    """Judges and reads the files of one folder.

    `allowed` and `globs` are patterns as in a `.gitignore`: of files that only look secret, and of
    files to index. Without `globs`, all files are indexed.
    """

    def __init__(
        self, folder: Path, *, allowed: Sequence[str] = (), globs: Sequence[str] = ()
    ) -> None:
        self.folder = folder
        self._hidden = HiddenFiles([folder], allowed=allowed)
        self._is_wanted = path_filter(globs, unclear=False) if globs else lambda _path: True

    def walk(self) -> Iterator[tuple[str, Stamp]]:
        """Yield the files that may be indexed by their names, as paths within the folder."""
        num_names = 0
        for where, folders, names in os.walk(self.folder):
            inner = PurePosixPath(Path(where).relative_to(self.folder).as_posix())
            folders[:] = sorted(name for name in folders if self._is_entered(inner / name))
            for name in sorted(names):
                path = str(inner / name)
                if (stamp := self._stamp(path)) is not None:
                    yield path, stamp
            num_names += len(names) + len(folders)
            if num_names > _MOST_NAMES:
                return

    def stamp(self, path: str) -> Stamp | None:
        """Return a file's stamp; None if it may not be indexed or is missing."""
        above = (folder for folder in PurePosixPath(path).parents if folder.name)
        return self._stamp(path) if all(map(self._is_own, above)) else None

    def _stamp(self, path: str) -> Stamp | None:
        """Return `stamp` of a file whose folders have been checked."""
        if PurePosixPath(path).suffix.lower() in _UNREAD or not self._is_wanted(path):
            return None
        try:
            path.encode()  # SQLite and JSON hold only names that UTF-8 can encode
            status = (self.folder / path).lstat()
        except (OSError, ValueError):
            return None
        if not stat.S_ISREG(status.st_mode) or not 0 < status.st_size <= MAX_BYTES:
            return None
        if self._hidden.reason(self.folder / path) is not None:
            return None
        return Stamp(status.st_mtime_ns, status.st_size)

    def is_entered(self, path: str) -> bool:
        """Whether this is a folder whose files are indexed, like all folders above it."""
        inner = PurePosixPath(path)
        if not stat.S_ISDIR(_mode(self.folder / inner)):  # most paths are files
            return False
        return all(map(self._is_entered, filter(lambda one: one.name, (*inner.parents, inner))))

    def text(self, path: str) -> str | None:
        """Read a file; None if it is missing, not text, or holds a secret."""
        try:
            text = read_regular(self.folder / path, MAX_BYTES).decode("utf-8-sig")
        except (OSError, ValueError):  # ValueError: no text, or a name that no system can hold
            return None
        if "\0" in text:
            return None
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        if not self._hidden.allows(self.folder / path):
            if max(map(len, text.split("\n"))) > LONGEST_LINE:
                return None
            if next(secrets_in(text), None) is not None:
                return None
        return text

    def _is_entered(self, folder: PurePosixPath) -> bool:
        return self._is_own(folder) and not self._hidden.hides_folder(self.folder / folder)

    def _is_own(self, folder: PurePosixPath) -> bool:
        """Whether a folder, not a link, holds the repository's own files."""
        place = self.folder / folder
        is_folder = not _is_foreign(folder.name) and stat.S_ISDIR(_mode(place))
        return is_folder and not _mode(place / _VENV)


def _mode(path: Path) -> int:
    """Return the mode of a path, following no link; 0 if it is missing or not accessible."""
    with suppress(OSError, ValueError):  # Path.exists() raises where it may not look
        return path.lstat().st_mode
    return 0


def is_never_indexed(path: str) -> bool:
    """Whether a path's name alone rules it out: its ending, its own name or a folder above."""
    inner = PurePosixPath(path)
    if inner.suffix.lower() in _UNREAD or inner.name in _FOREIGN:
        return True
    return any(map(_is_foreign, inner.parts[:-1]))


def _is_foreign(folder: str) -> bool:
    """Whether a folder holds state of tools or installed packages."""
    return folder.startswith(".") or folder in _FOREIGN
