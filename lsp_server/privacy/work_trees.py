"""Finds git's work trees and ignore lists without git: a repository can make it run programs."""

import os
import re
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache, lru_cache
from pathlib import Path

from lsp_server.privacy.regular_files import FileStamp, Look, read_regular

IGNORE_FILES = (".gitignore", ".foregramignore")  # in one folder the second has the last word
_MAX_BYTES = 2**13  # bytes of a file that names a folder: twice Linux's longest path
_MAX_SETTINGS_BYTES = 2**18  # bytes of a file of git's settings, as of an ignore list
_MAX_KNOWN = 1_000  # files of git's settings, and work trees, whose content is cached
_MAX_INCLUDES = 5  # levels of settings files that include each other
_SECTION = re.compile(r'\s*\[\s*([\w.-]+)\s*(?:"((?:\\.|[^"\\])*)"\s*)?\](.*)')
_SETTING = re.compile(r"\s*([A-Za-z][\w-]*)\s*(?:=(.*)|[#;].*)?")
_VALUE = re.compile(r'"((?:\\.|[^"\\])*)"|((?:\\.|[^"\\#;])+)|[#;].*')

# A folder's ignore files, the last of which decides (no stamp if missing), and if case is ignored.
FolderLists = tuple[tuple[tuple[str, FileStamp | None], ...], bool]


def work_tree_of(folder: Path, look: Look | None = None) -> Path | None:
    """Return the top of the work tree around a folder; None if there is none.

    One around the home folder often holds settings and ignores all else, so it does not count.
    """
    homes, at, look = _homes(), str(folder), look or Look()
    while at not in homes:
        if _git_folder(at, look) is not None:
            return Path(at)
        at, below = os.path.dirname(at), at  # noqa: PTH120 - at every key
        if at == below:
            return None
    return None


def folder_lists(folders: Iterable[str], look: Look) -> Iterator[FolderLists]:
    """Yield the lists of each folder, from the outermost on; a work tree's top adds outer ones."""
    folds = False
    for folder in folders:
        files = [f"{folder}/{name}" for name in IGNORE_FILES]
        git = _git_folder(folder, look)
        if git is not None and folder in _homes():
            del files[0]  # see `work_tree_of`
        elif git is not None:
            outer, folds = _git_rules(folder, git, look)
            files = [*outer, *files]
        yield tuple((file, look.stamp(file)) for file in files), folds


def _git_rules(top: str, git: str, look: Look) -> tuple[Iterator[str], bool]:
    """Return a work tree's lists outside of it, the decisive one last, and if case is ignored."""
    variables = os.environ  # noqa: TID251 - git's own
    home = variables.get("XDG_CONFIG_HOME") or "~/.config"
    own = variables.get("GIT_CONFIG_GLOBAL")
    files = (f"{home}/git/config", "~/.gitconfig") if own is None else (own,)
    files = (variables.get("GIT_CONFIG_SYSTEM", "/etc/gitconfig"), *files, f"{git}/config")
    said = dict(one for file in files for one in _settings(file, look))
    excludes = _expanded(said.get("core.excludesfile", f"{home}/git/ignore"))
    # A link there is its user's own: git puts nothing of a repository there.
    lists = (os.path.join(top, excludes), f"{git}/info/exclude")  # noqa: PTH118 - at every key
    folds = said.get("core.ignorecase", "").lower() in {"1", "on", "true", "yes"}
    return map(look.real, lists), folds


def _expanded(path: str) -> str:
    return os.path.expanduser(path)  # noqa: PTH111 - at every key


def _settings(file: str, look: Look, depth: int = 0) -> Iterator[tuple[str, str]]:
    """Yield the settings of a git configuration file and of those that it includes, in order."""
    path = look.real(_expanded(file))
    for name, value in _parsed(path, look.stamp(path)):
        if name == "include.path" and depth < _MAX_INCLUDES:
            yield from _settings(str(Path(path).parent / _expanded(value)), look, depth + 1)
        yield name, value


@lru_cache(_MAX_KNOWN)
def _parsed(file: str, _stamp: FileStamp | None) -> tuple[tuple[str, str], ...]:
    found, section = list[tuple[str, str]](), ""
    for line in _read(Path(file), _MAX_SETTINGS_BYTES).replace("\\\n", "").split("\n"):
        if begun := _SECTION.fullmatch(line):
            section = ".".join(filter(None, (begun[1].lower(), begun[2])))
            line = begun[3]  # noqa: PLW2901 - a setting may stand behind its section
        if told := _SETTING.fullmatch(line):
            value = "true" if told[2] is None else "".join(map("".join, _VALUE.findall(told[2])))
            found.append((f"{section}.{told[1].lower()}", re.sub(r"\\(.)", r"\1", value.strip())))
    return tuple(found)


def _git_folder(top: str, look: Look) -> str | None:
    """Return the repository's folder, by `.git`: a folder, or a file that names one."""
    git = f"{top}/.git"
    stamp = look.target(git)
    if stamp is None:
        return None
    if stat.S_ISDIR(stamp.kind):
        return git
    return _named_folder(Path(top), stamp) if stat.S_ISREG(stamp.kind) else None


@lru_cache(_MAX_KNOWN)
def _named_folder(top: Path, _stamp: FileStamp) -> str | None:
    """Return the folder that the `.git` file of a submodule or a linked work tree names."""
    named = _read(top / ".git")
    if not named.startswith("gitdir:"):
        return None
    own = top / named.removeprefix("gitdir:").strip()
    return str(own / _read(own / "commondir"))


def _read(file: Path, most_bytes: int = _MAX_BYTES) -> str:
    """Return the text of a file without blanks at its ends; "" if it cannot be read."""
    with suppress(OSError, ValueError):
        return read_regular(file, most_bytes).decode("utf-8", "surrogateescape").strip()
    return ""


@cache
def _homes() -> frozenset[str]:
    """Return the home folder and those above it, as named and with links resolved."""
    with suppress(RuntimeError, OSError):  # a user without one
        home = Path.home()
        around = (home, *home.parents, home.resolve(), *home.resolve().parents)
        return frozenset(map(str, around))
    return frozenset()
