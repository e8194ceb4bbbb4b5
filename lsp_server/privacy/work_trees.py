"""Where git's work trees begin, and which list of ignored files each has beside those in it.

Git itself is not asked: a repository's configuration can have it run programs.
"""

import os
import stat
from contextlib import suppress
from functools import cache, lru_cache
from pathlib import Path

from lsp_server.privacy.regular_files import UnusableFileError, read_regular

_MAX_BYTES = 2**13  # of a file that names a folder
_MAX_KNOWN = 1_000


def work_tree_of(folder: Path) -> Path | None:
    """The nearest folder, from this one up, that is the top of a work tree; None where none is.

    One that a home folder lies in, as of people who keep their settings with git, is none: it often
    ignores all that it does not track.
    """
    homes, at = _homes(), str(folder)
    while at not in homes:
        if _git_folder(at) is not None:
            return Path(at)
        at, below = os.path.dirname(at), at  # noqa: PTH120 - at every key
        if at == below:
            return None
    return None


def exclude_file(folder: str) -> str | None:
    """The list `info/exclude` of the repository whose work tree a folder is the top of."""
    git = _git_folder(folder)
    if git is None or folder in _homes():
        return None
    exclude = f"{git}/info/exclude"
    # A link there is its user's own: git puts nothing of a repository there.
    return os.path.realpath(exclude) if os.path.islink(exclude) else exclude  # noqa: PTH114 - at every key


def _git_folder(top: str) -> str | None:
    """What holds a work tree's repository, by its `.git`: a folder, or a file that names one."""
    git = f"{top}/.git"
    try:
        status = os.stat(git)  # noqa: PTH116 - at every key
    except (OSError, ValueError):
        return None
    if stat.S_ISDIR(status.st_mode):
        return git
    if not stat.S_ISREG(status.st_mode):
        return None
    return _named_folder(Path(top), status.st_mtime_ns, status.st_ino)


@lru_cache(_MAX_KNOWN)
def _named_folder(top: Path, _modified_ns: int, _inode: int) -> str | None:
    """As a submodule's `.git` names it, and that of a work tree beside the first one."""
    named = _read(top / ".git")
    if not named.startswith("gitdir:"):
        return None
    own = top / named.removeprefix("gitdir:").strip()
    return str(own / _read(own / "commondir"))


def _read(file: Path) -> str:
    """The text of a file without blanks at its ends; "" where there is none to be read."""
    with suppress(UnusableFileError, OSError, ValueError):
        return read_regular(file, _MAX_BYTES).decode("utf-8", "surrogateescape").strip()
    return ""


@cache
def _homes() -> frozenset[str]:
    """The user's home folder and those around it, by their names and as links lead."""
    with suppress(RuntimeError, OSError):  # a user without one
        home = Path.home()
        around = (home, *home.parents, home.resolve(), *home.resolve().parents)
        return frozenset(map(str, around))
    return frozenset()
