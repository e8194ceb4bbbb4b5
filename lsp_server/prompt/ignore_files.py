"""What `.gitignore` and `.foregramignore` say about files below a folder, as git reads them."""

import re
from collections import OrderedDict
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from pathspec import GitIgnoreSpec

IGNORE_FILES = (".gitignore", ".foregramignore")  # in one folder the second has the last word
_MAX_FOLDERS = 2_000
_MAX_BYTES = 2**20  # above any list of patterns

_Stamp = tuple[tuple[int, int] | None, ...]


class IgnoreFiles:
    """Reads the lists of each folder when they are needed, and again when they have changed."""

    def __init__(self) -> None:
        self._read: OrderedDict[Path, tuple[_Stamp, GitIgnoreSpec | None]] = OrderedDict()

    def ignores(self, root: Path, relative: PurePosixPath) -> bool:
        """Whether lists from `root` down to the file's folder name `relative`.

        In an ignored folder no file can be taken back, so each folder on the way is asked first.
        """
        parts = relative.parts
        lists = [self._patterns(root.joinpath(*parts[:depth])) for depth in range(len(parts))]
        return any(_names(lists, parts, count) for count in range(1, len(parts) + 1))

    def _patterns(self, folder: Path) -> GitIgnoreSpec | None:
        files = [folder / name for name in IGNORE_FILES]
        stamp = tuple(map(_stamp, files))
        known = self._read.get(folder)
        if known is None or known[0] != stamp:
            lines = [
                line for file, at in zip(files, stamp, strict=True) if at for line in _lines(file)
            ]
            known = (stamp, compiled(lines) if lines else None)
            self._read[folder] = known
        self._read.move_to_end(folder)
        while len(self._read) > _MAX_FOLDERS:
            self._read.popitem(last=False)
        return known[1]


def _names(lists: list[GitIgnoreSpec | None], parts: tuple[str, ...], count: int) -> bool:
    """The first `count` parts are ignored: the nearest list that says anything decides."""
    end = "/" if count < len(parts) else ""
    for depth in range(count - 1, -1, -1):
        patterns = lists[depth]
        if patterns is None:
            continue
        decision = patterns.check_file("/".join(parts[depth:count]) + end).include
        if decision is not None:
            return decision
    return False


def compiled(patterns: Iterable[str]) -> GitIgnoreSpec:
    """Patterns as git reads them; one that makes no sense says nothing."""
    usable = []
    for pattern in patterns:
        # To git `a/**` is what `a/*` is, and not `a` itself, as pathspec has it.
        plain = pattern.rstrip().removesuffix("*") if pattern.rstrip().endswith("/**") else pattern
        try:
            GitIgnoreSpec.from_lines([plain])
        except (ValueError, re.error):
            continue
        usable.append(plain)
    return GitIgnoreSpec.from_lines(usable)


def _stamp(file: Path) -> tuple[int, int] | None:
    try:
        status = file.stat()
    except (OSError, ValueError):  # ValueError: a name that no system can hold
        return None
    return status.st_mtime_ns, status.st_size


def _lines(file: Path) -> list[str]:
    try:
        with file.open("rb") as stream:
            return stream.read(_MAX_BYTES).decode("utf-8-sig", "replace").splitlines()
    except OSError:
        return []
