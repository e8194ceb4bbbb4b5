"""Files that are neither completed in nor sent: secret ones, and those that a list ignores."""

import os
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from lsp_server.prompt.ignore_files import Ignored, IgnoreFiles, SettingGlobs
from lsp_server.prompt.secret_files import is_secret_name


class Hidden(StrEnum):
    """Why a file is left alone; the value is the reason's code."""

    SECRET = "secret_file"
    IGNORED = "ignored_file"
    UNCLEAR = "unclear_ignore_file"


_VERDICTS = {
    Ignored.NO: None,
    Ignored.YES: Hidden.IGNORED,
    Ignored.UNCLEAR: Hidden.UNCLEAR,
}


class _Root(NamedTuple):
    """A workspace folder as it is named, and where it really is."""

    named: Path
    real: Path


class _Place(NamedTuple):
    """A file, the innermost of nested workspace folders that holds it, and its path in there."""

    path: Path
    root: Path | None
    inner: str

    @classmethod
    def of(cls, path: Path, roots: list[Path]) -> "_Place":
        """Find the folder."""
        root = max((one for one in roots if path.is_relative_to(one)), key=_depth, default=None)
        return cls(path, root, path.relative_to(root or path.anchor).as_posix())


class Privacy:
    """Judges files by their names, those of what links lead to, and the workspace's ignore files.

    `allowed` are patterns as in a `.gitignore`, which open what would be hidden. A link is judged
    twice, and what is allowed by the link's name does not allow its target.
    """

    def __init__(self, roots: Sequence[Path], *, allowed: Sequence[str] = ()) -> None:
        self._roots = [_Root(_plain(root), _real(root)) for root in roots]
        self._allowed = SettingGlobs(allowed, unclear=False)
        self._ignore_files = IgnoreFiles()

    def hidden(self, path: Path) -> Hidden | None:
        """Why the file is hidden, if it is; outside of the workspace only names tell."""
        verdicts = (self._judge(place) for place in self._places(path))
        return next(filter(None, verdicts), None)

    def allows(self, path: Path) -> bool:
        """Whether the settings open the file, whatever its name and its text are like."""
        places = self._places(path)
        return all(self._allowed.name(place.inner) for place in places)

    def _places(self, path: Path) -> list[_Place]:
        """Where the file is by its name and, where that is another place, by its links."""
        named, real = _plain(path), _real(path)
        places = [_Place.of(named, [root.named for root in self._roots])]
        if real != named:
            places.append(_Place.of(real, [root.real for root in self._roots]))
        return places

    def _judge(self, place: _Place) -> Hidden | None:
        if self._allowed.name(place.inner):
            return None
        if is_secret_name(place.path):
            return Hidden.SECRET
        if place.root is None:
            return None
        return _VERDICTS[self._ignore_files.verdict(place.root, PurePosixPath(place.inner))]


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
