"""What `.gitignore` and `.foregramignore` say about files below a folder, as git reads them.

They are a repository's, and may ask for anything: what is no file, is too long or takes too long
to judge makes the verdict unclear, and what is unclear is not sent.
"""

import os
import stat
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import NamedTuple, TypeVar

from lsp_server.privacy.globs import GlobList, MatchBudget, MatchBudgetError
from lsp_server.reasons import Reason

IGNORE_FILES = (".gitignore", ".foregramignore")  # in one folder the second has the last word
_MAX_FOLDERS = 2_000
_MAX_VERDICTS = 10_000
_MAX_DEPTH = 128  # folders between the workspace's and a file
_MAX_BYTES = 2**18  # above any list that people write


class UnusableListError(Exception):
    """A list that is no file of ordinary size."""


class _Stamp(NamedTuple):
    """By this a changed list is noticed."""

    kind: int
    modified_ns: int
    num_bytes: int
    inode: int


_Stamps = tuple[_Stamp | None, ...]
_Value = TypeVar("_Value")


class IgnoreFiles:
    """Reads the lists of each folder when they are needed, and again when they have changed."""

    def __init__(self) -> None:
        self._read: OrderedDict[Path, tuple[_Stamps, GlobList | None]] = OrderedDict()
        self._verdicts: OrderedDict[Path, tuple[_Stamps, Reason | None]] = OrderedDict()

    def verdict(self, root: Path, relative: PurePosixPath) -> Reason | None:
        """Whether lists from `root` down to the file's folder name `relative`."""
        parts = relative.parts
        if len(parts) > _MAX_DEPTH:
            return Reason.UNCLEAR_IGNORE_FILE
        folders = [root.joinpath(*parts[:depth]) for depth in range(len(parts))]
        stamps = tuple(_stamp(folder / name) for folder in folders for name in IGNORE_FILES)
        known = self._verdicts.get(root / relative)
        if known is None or known[0] != stamps:
            known = stamps, self._judge(folders, stamps, parts)
        _keep(self._verdicts, root / relative, known, _MAX_VERDICTS)
        return known[1]

    def _judge(self, folders: list[Path], stamps: _Stamps, parts: tuple[str, ...]) -> Reason | None:
        budget, count = MatchBudget(), len(IGNORE_FILES)
        try:
            lists = [
                self._patterns(folder, stamps[count * depth : count * (depth + 1)], budget)
                for depth, folder in enumerate(folders)
            ]
            return Reason.IGNORED_FILE if is_ignored(lists, parts, budget) else None
        except (MatchBudgetError, UnusableListError):
            return Reason.UNCLEAR_IGNORE_FILE

    def _patterns(self, folder: Path, stamps: _Stamps, budget: MatchBudget) -> GlobList | None:
        known = self._read.get(folder)
        if known is None or known[0] != stamps:
            files = zip(IGNORE_FILES, stamps, strict=True)
            texts = [_text(folder / name, at) for name, at in files if at is not None]
            lines = [line for text in texts for line in text.split("\n")]
            known = stamps, GlobList.of(lines, budget) if texts else None
        _keep(self._read, folder, known, _MAX_FOLDERS)
        return known[1]


class SettingGlobs:
    """The patterns of a setting, read as a list in the workspace folder is.

    `unclear` is the answer where judging them would take too long.
    """

    def __init__(self, patterns: Iterable[str], *, unclear: bool) -> None:
        self._unclear = unclear
        self._globs: GlobList | None = None
        with suppress(MatchBudgetError):
            self._globs = GlobList.of(patterns, MatchBudget())

    def match(self, path: str) -> bool:
        """Whether they match a file's path."""
        if self._globs is None:
            return self._unclear
        try:
            return is_ignored([self._globs], PurePosixPath(path).parts, MatchBudget())
        except MatchBudgetError:
            return self._unclear


def is_ignored(lists: Sequence[GlobList | None], parts: Sequence[str], budget: MatchBudget) -> bool:
    """Whether lists, one for each folder from the first on, name a file.

    In an ignored folder no file can be taken back, so each folder on the way is asked first.
    Raises MatchBudgetError.
    """
    return any(_is_named(lists, parts, count, budget) for count in range(1, len(parts) + 1))


def _is_named(
    lists: Sequence[GlobList | None], parts: Sequence[str], count: int, budget: MatchBudget
) -> bool:
    """The first `count` parts are ignored: the nearest list that says anything decides."""
    is_folder = count < len(parts)
    for depth in range(min(count, len(lists)) - 1, -1, -1):
        patterns = lists[depth]
        if patterns is None:
            continue
        decision = patterns.decision(parts[depth:count], budget, is_folder=is_folder)
        if decision is not None:
            return decision
    return False


def _keep(table: "OrderedDict[Path, _Value]", key: Path, value: _Value, most: int) -> None:
    """Note a value as the one that was used last; the one unused for longest makes room."""
    table[key] = value
    table.move_to_end(key)
    if len(table) > most:
        table.popitem(last=False)


def _stamp(file: Path) -> _Stamp | None:
    try:
        status = file.lstat()
    except (OSError, ValueError):  # ValueError: a name that no system can hold
        return None
    kind = stat.S_IFMT(status.st_mode)
    return _Stamp(kind, status.st_mtime_ns, status.st_size, status.st_ino)


def _text(file: Path, stamp: _Stamp) -> str:
    """Raises UnusableListError; it never waits for a pipe or a device, nor follows a link."""
    if not stat.S_ISREG(stamp.kind):
        raise UnusableListError
    try:
        opened = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY)
    except OSError as error:
        raise UnusableListError from error
    with os.fdopen(opened, "rb") as stream:
        if not stat.S_ISREG(os.fstat(opened).st_mode):  # it has just changed
            raise UnusableListError
        content = stream.read(_MAX_BYTES + 1)
    if len(content) > _MAX_BYTES:
        raise UnusableListError
    return content.decode("utf-8-sig", "replace")
