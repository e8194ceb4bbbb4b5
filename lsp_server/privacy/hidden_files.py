"""Files that are neither completed nor sent: secret ones, and ignored ones."""

import os
import stat
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from lsp_server.privacy.ignore_files import IgnoreFiles, SettingGlobs
from lsp_server.privacy.regular_files import Look
from lsp_server.privacy.secret_files import is_secret_name
from lsp_server.privacy.work_trees import work_tree_of
from lsp_server.reasons import Reason


class _Path(NamedTuple):
    """A file, the innermost workspace folder that holds it, and its path in there."""

    whole: Path
    root: Path | None
    inner: str

    @classmethod
    def of(cls, path: Path, roots: list[Path]) -> "_Path":
        """Find the folder."""
        root = innermost(path, roots)
        return cls(path, root, path.relative_to(root or path.anchor).as_posix())


class HiddenFiles:
    """Judges files by their names, those of links' targets, and the workspace's ignore files.

    `allowed` are patterns as in a `.gitignore`, of files that are not hidden. A link is judged
    twice: a pattern for the link's name does not allow its target.
    """

    def __init__(self, roots: Sequence[Path], *, allowed: Sequence[str] = ()) -> None:
        self._named_roots = [*map(_plain, roots)]
        self._real_roots = [Path(os.path.realpath(root)) for root in roots]
        self._allowed = SettingGlobs(allowed, unclear=False)
        self._ignore_files = IgnoreFiles()

    def reason(self, path: Path, look: Look | None = None) -> Reason | None:
        """Why the file is hidden, if it is; outside of any repository only its name decides."""
        look = look or Look()
        reasons = (self._judge(one, look) for one in self._paths(path, look))
        return next(filter(None, reasons), None)

    def allows(self, path: Path, look: Look | None = None) -> bool:
        """Whether the settings allow the file, whatever its name and text."""
        return all(self._allowed.match(one.inner) for one in self._paths(path, look or Look()))

    def hides_folder(self, folder: Path) -> bool:
        """Whether everything below a folder of the workspace is hidden by the lists above it."""
        one = _Path.of(_plain(folder), self._named_roots)
        if one.root is None or self._allowed.match(one.inner):
            return False
        inner = PurePosixPath(one.inner)
        return self._ignore_files.verdict(one.root, inner, is_folder=True) is not None

    def _paths(self, path: Path, look: Look) -> list[_Path]:
        """The file's path as it is named and, where links lead elsewhere, the real one."""
        named = _plain(path)
        real = _real(named, look)
        paths = [_Path.of(named, self._named_roots)]
        if real != named:
            paths.append(_Path.of(real, self._real_roots))
        return paths

    def _judge(self, path: _Path, look: Look) -> Reason | None:
        if self._allowed.match(path.inner):
            return None
        if is_secret_name(path.whole):
            return Reason.SECRET_FILE
        if path.root is not None:
            return self._ignore_files.verdict(path.root, PurePosixPath(path.inner), look)
        around = work_tree_of(path.whole.parent, look)
        if around is None:
            return None
        inner = PurePosixPath(path.whole.relative_to(around))
        return self._ignore_files.verdict(around, inner, look)


def innermost(path: Path, roots: Iterable[Path]) -> Path | None:
    """The folder nearest to a path of those that hold it, if any does."""
    around = filter(path.is_relative_to, roots)
    return max(around, key=lambda root: len(root.parts), default=None)


def _plain(path: Path) -> Path:
    """Absolute, without `..`, links as they are."""
    return Path(os.path.abspath(path))  # noqa: PTH100 - Path.absolute() keeps `..`


def _real(path: Path, look: Look) -> Path:
    folder = look.real(str(path.parent))
    stamp = look.stamp(f"{folder}/{path.name}")
    is_link = stamp is not None and stat.S_ISLNK(stamp.kind)
    return Path(look.real(str(path))) if is_link else Path(folder, path.name)
