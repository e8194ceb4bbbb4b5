"""Files that are neither completed nor sent: secret ones, and ignored ones."""

import os
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from lsp_server.privacy.ignore_files import IgnoreFiles, SettingGlobs
from lsp_server.privacy.secret_files import is_secret_name
from lsp_server.reasons import Reason


class _Root(NamedTuple):
    """A workspace folder as it is named, and where it really is."""

    named: Path
    real: Path


class _Path(NamedTuple):
    """A file, the innermost workspace folder that holds it, and its path in there."""

    whole: Path
    root: Path | None
    inner: str

    @classmethod
    def of(cls, path: Path, roots: list[Path]) -> "_Path":
        """Find the folder."""
        around = [root for root in roots if path.is_relative_to(root)]
        root = max(around, key=lambda root: len(root.parts), default=None)
        return cls(path, root, path.relative_to(root or path.anchor).as_posix())


class HiddenFiles:
    """Judges files by their names, those of links' targets, and the workspace's ignore files.

    `allowed` are patterns as in a `.gitignore`, of files that are not hidden. A link is judged
    twice: a pattern for the link's name does not allow its target.
    """

    def __init__(self, roots: Sequence[Path], *, allowed: Sequence[str] = ()) -> None:
        self._roots = [_Root(_plain(root), _real(root)) for root in roots]
        self._allowed = SettingGlobs(allowed, unclear=False)
        self._ignore_files = IgnoreFiles()

    def reason(self, path: Path) -> Reason | None:
        """Why the file is hidden, if it is; outside the workspace only its name decides."""
        return next(filter(None, map(self._judge, self._paths(path))), None)

    def allows(self, path: Path) -> bool:
        """Whether the settings allow the file, whatever its name and text."""
        return all(self._allowed.match(one.inner) for one in self._paths(path))

    def _paths(self, path: Path) -> list[_Path]:
        """The file's path as it is named and, where links lead elsewhere, the real one."""
        named, real = _plain(path), _real(path)
        paths = [_Path.of(named, [root.named for root in self._roots])]
        if real != named:
            paths.append(_Path.of(real, [root.real for root in self._roots]))
        return paths

    def _judge(self, path: _Path) -> Reason | None:
        if self._allowed.match(path.inner):
            return None
        if is_secret_name(path.whole):
            return Reason.SECRET_FILE
        if path.root is None:
            return None
        return self._ignore_files.verdict(path.root, PurePosixPath(path.inner))


def _plain(path: Path) -> Path:
    """Absolute, without `..`, links as they are."""
    return Path(os.path.abspath(path))  # noqa: PTH100 - Path.absolute() keeps `..`


def _real(path: Path) -> Path:
    try:
        return path.resolve()
    except (OSError, RuntimeError, ValueError):  # a circle of links, a name no system can hold
        return _plain(path)
