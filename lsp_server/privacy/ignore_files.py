"""What `.gitignore` and `.foregramignore` say about files below a folder, as git reads them.

They are a repository's, and may ask for anything: what is no file, is too long or takes too long
to judge makes the verdict unclear, and what is unclear is not sent.
"""

import os
import stat
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import accumulate
from pathlib import Path, PurePosixPath
from typing import NamedTuple

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


_Stamps = tuple[_Stamp | None, ...]  # of the lists in one folder


class IgnoreFiles:
    """Reads the lists of each folder when they are needed, and again when they have changed."""

    def __init__(self) -> None:
        self._read: dict[Path, tuple[_Stamps, GlobList]] = {}  # the last used is the last
        self._known = lru_cache(_MAX_VERDICTS)(self._judge)

    def verdict(
        self, root: Path, relative: PurePosixPath, *, is_folder: bool = False
    ) -> Reason | None:
        """Whether lists from `root` down to the file's folder name `relative`."""
        parts = relative.parts
        if len(parts) > _MAX_DEPTH:
            return Reason.UNCLEAR_IGNORE_FILE
        folders = accumulate((str(root), *parts[:-1]), os.path.join)
        stamps = tuple(
            tuple(_stamp(os.path.join(folder, name)) for name in IGNORE_FILES)  # noqa: PTH118 - at every key
            for folder in folders
        )
        return self._known(root, parts, stamps, is_folder)

    def _judge(
        self,
        root: Path,
        parts: tuple[str, ...],
        stamps: tuple[_Stamps, ...],
        is_folder: bool,  # noqa: FBT001 - a key of the cache
    ) -> Reason | None:
        budget = MatchBudget()
        try:
            lists = [
                self._patterns(root.joinpath(*parts[:depth]), of_folder, budget)
                for depth, of_folder in enumerate(stamps)
            ]
            is_hidden = is_ignored(lists, parts, budget, is_folder=is_folder)
            return Reason.IGNORED_FILE if is_hidden else None
        except (MatchBudgetError, UnusableListError, OSError):
            return Reason.UNCLEAR_IGNORE_FILE

    def _patterns(self, folder: Path, stamps: _Stamps, budget: MatchBudget) -> GlobList:
        known = self._read.pop(folder, None)
        if known is None or known[0] != stamps:
            files = zip(IGNORE_FILES, stamps, strict=True)
            texts = [_text(folder / name, at) for name, at in files if at is not None]
            lines = [line for text in texts for line in text.split("\n")]
            known = stamps, GlobList.of(lines, budget)
        self._read[folder] = known
        if len(self._read) > _MAX_FOLDERS:
            del self._read[next(iter(self._read))]
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
        if self._globs.is_empty:
            return False
        try:
            return is_ignored([self._globs], PurePosixPath(path).parts, MatchBudget())
        except MatchBudgetError:
            return self._unclear


def is_ignored(
    lists: Sequence[GlobList],
    parts: Sequence[str],
    budget: MatchBudget,
    *,
    is_folder: bool = False,
) -> bool:
    """Whether lists, one for each folder from the first on, name a file, or a folder.

    In an ignored folder no file can be taken back, so each folder on the way is asked first.
    Raises MatchBudgetError.
    """
    return any(
        _is_named(lists, parts[:count], budget, is_folder=is_folder or count < len(parts))
        for count in range(1, len(parts) + 1)
    )


def _is_named(
    lists: Sequence[GlobList], parts: Sequence[str], budget: MatchBudget, *, is_folder: bool
) -> bool:
    """A path is ignored: the nearest list that says anything decides."""
    count = len(parts)
    for depth in range(min(count, len(lists)) - 1, -1, -1):
        decision = lists[depth].decision(parts[depth:count], budget, is_folder=is_folder)
        if decision is not None:
            return decision
    return False


def _stamp(file: str) -> _Stamp | None:
    try:
        status = os.lstat(file)
    except (OSError, ValueError):  # ValueError: a name that no system can hold
        return None
    kind = stat.S_IFMT(status.st_mode)
    return _Stamp(kind, status.st_mtime_ns, status.st_size, status.st_ino)


def _text(file: Path, stamp: _Stamp) -> str:
    """Raises UnusableListError or OSError; it never waits for a pipe or a device, nor follows a link."""
    if not stat.S_ISREG(stamp.kind):
        raise UnusableListError
    opened = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY)
    with os.fdopen(opened, "rb") as stream:
        if not stat.S_ISREG(os.fstat(opened).st_mode):  # it has just changed
            raise UnusableListError
        content = stream.read(_MAX_BYTES + 1)
    if len(content) > _MAX_BYTES:
        raise UnusableListError
    return content.decode("utf-8-sig", "replace")
