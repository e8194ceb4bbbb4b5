"""What `.gitignore` and `.foregramignore` say about files below a folder, as git reads them.

Those of the whole work tree count, also above a workspace folder in it, its `info/exclude`, and its
user's own list. They may ask for anything: what is no file, is too long or takes too long to judge
makes the verdict unclear, and what is unclear is not sent.
"""

import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import accumulate
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from lsp_server.privacy.globs import GlobList, MatchBudget, MatchBudgetError
from lsp_server.privacy.regular_files import FileStamp, Look, UnusableFileError, read_regular
from lsp_server.privacy.work_trees import git_rules, is_home_tree, work_tree_of
from lsp_server.reasons import Reason

IGNORE_FILES = (".gitignore", ".foregramignore")  # in one folder the second has the last word
_MAX_FOLDERS = 2_000
_MAX_VERDICTS = 10_000
_MAX_DEPTH = 128  # folders between that of the first list and a file
_MAX_BYTES = 2**18  # above any list that people write


_List = tuple[str, FileStamp | None]  # its file, and None where that is not there


class _Lists(NamedTuple):
    """What may list ignored files of a folder; of two that name a file, the later one decides."""

    files: tuple[_List, ...]
    folds: bool


class IgnoreFiles:
    """Reads the lists of each folder when they are needed, and again when they have changed."""

    def __init__(self) -> None:
        self._read: dict[_Lists, GlobList] = {}  # the last used is the last
        self._known = lru_cache(_MAX_VERDICTS)(self._judge)

    def verdict(
        self,
        root: Path,
        relative: PurePosixPath,
        look: Look | None = None,
        *,
        is_folder: bool = False,
    ) -> Reason | None:
        """Whether lists down to the file's folder name `relative`, a path in the folder `root`.

        They begin at the top of the work tree that `root` is in. Where those above name `root`
        itself, its own lists alone count: who works in a folder wants completions there.
        """
        look = look or Look()
        top = work_tree_of(root, look) or root
        parts = (*root.relative_to(top).parts, *relative.parts)
        if len(parts) > _MAX_DEPTH:
            return Reason.UNCLEAR_IGNORE_FILE
        folders = accumulate((str(top), *parts[:-1]), os.path.join)
        return self._known(
            parts, len(parts) - len(relative.parts), tuple(_lists(folders, look)), is_folder
        )

    def _judge(
        self,
        parts: tuple[str, ...],
        num_above: int,
        lists: tuple[_Lists, ...],
        is_folder: bool,  # noqa: FBT001 - a key of the cache
    ) -> Reason | None:
        """`num_above` of the parts lead to the workspace's folder."""
        budget = MatchBudget()
        try:
            globs = [self._patterns(of_folder, budget) for of_folder in lists]
            if is_ignored(globs[:num_above], parts[:num_above], budget, is_folder=True):
                globs, parts = globs[num_above:], parts[num_above:]
            is_hidden = is_ignored(globs, parts, budget, is_folder=is_folder)
            return Reason.IGNORED_FILE if is_hidden else None
        except (MatchBudgetError, UnusableFileError, OSError):
            return Reason.UNCLEAR_IGNORE_FILE

    def _patterns(self, lists: _Lists, budget: MatchBudget) -> GlobList:
        """Those of one folder."""
        known = self._read.pop(lists, None)
        if known is None:
            texts = [_text(file, stamp) for file, stamp in lists.files if stamp is not None]
            lines = (line for text in texts for line in text.split("\n"))
            known = GlobList.of(lines, budget, folds=lists.folds)
        self._read[lists] = known
        if len(self._read) > _MAX_FOLDERS:
            del self._read[next(iter(self._read))]
        return known


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


def _lists(folders: Iterable[str], look: Look) -> Iterator[_Lists]:
    """Those of each folder, from a top one on."""
    folds = False
    for folder in folders:
        rules = git_rules(folder, look)
        folds = folds if rules is None else rules.folds
        own = IGNORE_FILES[1:] if is_home_tree(folder, look) else IGNORE_FILES
        files = (*(rules.lists if rules else ()), *(f"{folder}/{name}" for name in own))
        yield _Lists(tuple((file, look.stamp(file)) for file in files), folds)


def _text(file: str, stamp: FileStamp) -> str:
    """Raises UnusableFileError or OSError."""
    if not stat.S_ISREG(stamp.kind):
        raise UnusableFileError
    return read_regular(Path(file), _MAX_BYTES).decode("utf-8-sig", "surrogateescape")
