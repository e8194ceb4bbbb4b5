"""Files that are neither completed nor sent: secret ones and ignored ones.

All lists of the work tree count, also above a workspace folder, as do its `info/exclude` and the
user's own. A file is not sent if one of them is no regular file, too long or too slow to match.
"""

import os
import stat
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import accumulate
from pathlib import Path, PurePosixPath

from lsp_server.privacy.globs import GlobList, MatchBudget
from lsp_server.privacy.regular_files import FileStamp, Look, read_regular
from lsp_server.privacy.secret_files import is_secret_name
from lsp_server.privacy.work_trees import FolderLists, folder_lists, work_tree_of
from lsp_server.reasons import Reason

_MAX_FOLDERS = 2_000  # folders whose lists stay compiled, more than most repositories have
_MAX_VERDICTS = 10_000  # paths whose verdict is kept, more than editors and prompts use at a time
_MAX_DEPTH = 128  # folders between that of the first list and a file
_MAX_BYTES = 2**18  # above any list that people write


class HiddenFiles:
    """Judges files by name, those of links' targets, and the workspace's ignore files. Thread-safe.

    `allowed`: `.gitignore` patterns of files not hidden; one for a link does not allow its target.
    """

    def __init__(self, roots: Sequence[Path], *, allowed: Sequence[str] = ()) -> None:
        self._named_roots = [*map(_plain, roots)]
        self._real_roots = [Path(os.path.realpath(root)) for root in roots]
        self._is_allowed = path_filter(allowed, unclear=False)
        self._read: dict[FolderLists, GlobList] = {}  # a changed list has another stamp
        self._known = lru_cache(_MAX_VERDICTS)(self._judge_lists)

    def reason(self, path: Path, look: Look | None = None) -> Reason | None:
        """Return why the file is hidden, or None; outside of a repository only its name decides."""
        look = look or Look()
        reasons = (self._judge(*one, look) for one in self._places(path, look))
        return next(filter(None, reasons), None)

    def allows(self, path: Path, look: Look | None = None) -> bool:
        """Whether the settings allow the file, whatever its name and text."""
        places = self._places(path, look or Look())
        return all(self._is_allowed(_inner(place, root)) for place, root in places)

    def hides_folder(self, folder: Path) -> bool:
        """Whether the lists above a folder of the workspace hide everything below it."""
        folder = _plain(folder)
        root = innermost(folder, self._named_roots)
        if root is None or self._is_allowed(_inner(folder, root)):
            return False
        return self._verdict(root, folder, Look(), is_folder=True) is not None

    def _places(self, path: Path, look: Look) -> list[tuple[Path, Path | None]]:
        """Return the file as named and the real one behind links, each with its innermost root."""
        named = _plain(path)
        real = _real(named, look)
        places = [(named, innermost(named, self._named_roots))]
        if real != named:
            places.append((real, innermost(real, self._real_roots)))
        return places

    def _judge(self, path: Path, root: Path | None, look: Look) -> Reason | None:
        if self._is_allowed(_inner(path, root)):
            return None
        if is_secret_name(path):
            return Reason.SECRET_FILE
        top = root or work_tree_of(path.parent, look)
        return None if top is None else self._verdict(top, path, look)

    def _verdict(
        self, root: Path, path: Path, look: Look, *, is_folder: bool = False
    ) -> Reason | None:
        """Judge a path in `root` by the lists from the top of the work tree down to its folder."""
        top = work_tree_of(root, look) or root
        parts = path.relative_to(top).parts
        if len(parts) > _MAX_DEPTH:
            return Reason.UNCLEAR_IGNORE_FILE
        folders = accumulate((str(top), *parts[:-1]), os.path.join)
        num_above = len(root.relative_to(top).parts)
        return self._known(parts, num_above, tuple(folder_lists(folders, look)), is_folder)

    def _judge_lists(
        self,
        parts: tuple[str, ...],
        num_above: int,
        lists: tuple[FolderLists, ...],
        is_folder: bool,  # noqa: FBT001 - a key of the cache
    ) -> Reason | None:
        """Judge a path, whose first `num_above` parts lead to the workspace's folder."""
        budget = MatchBudget()
        try:
            globs = [self._patterns(of_folder, budget) for of_folder in lists]
            if is_ignored(globs[:num_above], parts[:num_above], budget, is_folder=True):
                globs, parts = globs[num_above:], parts[num_above:]  # the user opened it anyway
            is_hidden = is_ignored(globs, parts, budget, is_folder=is_folder)
            return Reason.IGNORED_FILE if is_hidden else None
        except OSError:  # TimeoutError is one
            return Reason.UNCLEAR_IGNORE_FILE

    def _patterns(self, lists: FolderLists, budget: MatchBudget) -> GlobList:
        known = self._read.get(lists)
        if known is None:
            files, folds = lists
            texts = [_text(file, stamp) for file, stamp in files if stamp is not None]
            lines = (line for text in texts for line in text.split("\n"))
            if len(self._read) >= _MAX_FOLDERS:
                self._read.clear()
            known = self._read[lists] = GlobList(lines, budget, folds=folds)
        return known


def innermost(path: Path, roots: Iterable[Path]) -> Path | None:
    """Return the innermost of the folders that hold a path, or None."""
    around = filter(path.is_relative_to, roots)
    return max(around, key=lambda root: len(root.parts), default=None)


def _inner(path: Path, root: Path | None) -> str:
    return path.relative_to(root or path.anchor).as_posix()


def _plain(path: Path) -> Path:
    """Return an absolute path without `..`; links stay as they are."""
    return Path(os.path.abspath(path))  # noqa: PTH100 - Path.absolute() keeps `..`


def _real(path: Path, look: Look) -> Path:
    folder = look.real(str(path.parent))
    stamp = look.stamp(f"{folder}/{path.name}")
    is_link = stamp is not None and stat.S_ISLNK(stamp.kind)
    return Path(look.real(str(path))) if is_link else Path(folder, path.name)


def path_filter(patterns: Sequence[str], *, unclear: bool) -> Callable[[str], bool]:
    """Return a test of paths by a setting's patterns; `unclear` is its result if it takes long."""
    if not patterns:
        return lambda _path: False
    try:
        globs = GlobList(patterns, MatchBudget())
    except TimeoutError:
        return lambda _path: unclear

    def matches(path: str) -> bool:
        try:
            return is_ignored([globs], PurePosixPath(path).parts, MatchBudget())
        except TimeoutError:
            return unclear

    return matches


def is_ignored(
    lists: Sequence[GlobList],
    parts: Sequence[str],
    budget: MatchBudget,
    *,
    is_folder: bool = False,
) -> bool:
    """Whether the lists of its folders, from the top on, ignore a path. Raises TimeoutError.

    No list takes back a file in an ignored folder, so each folder above is judged first.
    """
    return any(
        _is_named(lists, parts[:count], budget, is_folder=is_folder or count < len(parts))
        for count in range(1, len(parts) + 1)
    )


def _is_named(
    lists: Sequence[GlobList], parts: Sequence[str], budget: MatchBudget, *, is_folder: bool
) -> bool:
    """Whether the nearest list that decides on a path ignores it."""
    for depth in range(min(len(parts), len(lists)) - 1, -1, -1):
        decision = lists[depth].decision(parts[depth:], budget, is_folder=is_folder)
        if decision is not None:
            return decision
    return False


def _text(file: str, stamp: FileStamp) -> str:
    """Read a list. Raises OSError if it is no regular file or too large."""
    if not stat.S_ISREG(stamp.kind):
        raise OSError(f"{file} is no regular file")
    return read_regular(Path(file), _MAX_BYTES).decode("utf-8-sig", "surrogateescape")
