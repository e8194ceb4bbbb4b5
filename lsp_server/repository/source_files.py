"""The files of a folder that may be indexed: text, not hidden, not too large, not installed."""

import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

from lsp_server.privacy.hidden_files import HiddenFiles, path_filter
from lsp_server.privacy.regular_files import Look, read_regular
from lsp_server.privacy.secret_texts import LONGEST_LINE, secrets_in
from lsp_server.repository.store import Stamp

MAX_BYTES = 2**20  # bytes of a file, as in Zed's search: larger ones are mostly generated
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
    """Judges and reads the files of a folder, or its `globs`; `allowed` ones only look secret."""

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
        if path.encode("utf-8", "replace").decode() != path:  # neither SQLite nor JSON can hold it
            return None
        look, place = Look(), self.folder / path
        found = look.stamp(str(place))
        if found is None or not stat.S_ISREG(found.kind) or not 0 < found.num_bytes <= MAX_BYTES:
            return None
        if self._hidden.reason(place, look) is not None:
            return None
        return Stamp(found.modified_ns, found.num_bytes)

    def is_entered(self, path: str) -> bool:
        """Whether this is a folder whose files are indexed, like all folders above it."""
        inner = PurePosixPath(path)
        if not _is_folder(self.folder / inner):  # most paths are files
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
        is_own = not _is_foreign(folder.name) and _is_folder(place)
        return is_own and Look().stamp(str(place / _VENV)) is None


def _is_folder(place: Path) -> bool:
    found = Look().stamp(str(place))
    return found is not None and stat.S_ISDIR(found.kind)


def is_never_indexed(path: str) -> bool:
    """Whether a path's name alone rules it out: its ending, its own name or a folder above."""
    inner = PurePosixPath(path)
    if inner.suffix.lower() in _UNREAD or inner.name in _FOREIGN:
        return True
    return any(map(_is_foreign, inner.parts[:-1]))


def _is_foreign(folder: str) -> bool:
    """Whether a folder holds state of tools or installed packages."""
    return folder.startswith(".") or folder in _FOREIGN
