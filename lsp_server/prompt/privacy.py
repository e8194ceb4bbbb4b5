"""Files that are neither completed in nor sent: secret ones, and those that a list ignores."""

import os
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from lsp_server.prompt.ignore_files import IgnoreFiles, compiled
from lsp_server.prompt.secret_files import is_secret_name


class Hidden(StrEnum):
    """Why a file is left alone; the value is the reason's code."""

    SECRET = "secret_file"
    IGNORED = "ignored_file"


class _Root(NamedTuple):
    """A workspace folder as it is named, and where it really is."""

    named: Path
    real: Path


class Privacy:
    """Judges files by their names, those of what links lead to, and the workspace's ignore files.

    `allowed` are patterns as in a `.gitignore`, which open what would be hidden. A link is judged
    twice, and what is allowed by the link's name does not allow its target.
    """

    def __init__(self, roots: Sequence[Path], *, allowed: Sequence[str] = ()) -> None:
        self._roots = [_Root(_plain(root), _real(root)) for root in roots]
        self._allowed = compiled(allowed)
        self._ignore_files = IgnoreFiles()

    def hidden(self, path: Path) -> Hidden | None:
        """Why the file is hidden, if it is; outside of the workspace only names tell."""
        named, real = _plain(path), _real(path)
        verdict = self._judge(named, [root.named for root in self._roots])
        if verdict is None and real != named:
            verdict = self._judge(real, [root.real for root in self._roots])
        return verdict

    def _judge(self, path: Path, roots: list[Path]) -> Hidden | None:
        # The innermost of nested workspace folders is the file's own.
        root = max((r for r in roots if path.is_relative_to(r)), key=_depth, default=None)
        inner = path.relative_to(root or path.anchor).as_posix()
        if self._allowed.check_file(inner).include:
            return None
        if is_secret_name(path):
            return Hidden.SECRET
        if root is not None and self._ignore_files.ignores(root, PurePosixPath(inner)):
            return Hidden.IGNORED
        return None


def _plain(path: Path) -> Path:
    """Absolute, without `..`, links as they are."""
    return Path(os.path.abspath(path))  # noqa: PTH100 - Path.absolute() keeps `..`


def _real(path: Path) -> Path:
    try:
        return path.resolve()
    except (OSError, RuntimeError, ValueError):  # a circle of links, a name no system can hold
        return _plain(path)


def _depth(path: Path) -> int:
    return len(path.parts)
