"""Patterns of `.gitignore` as git reads them, matched within a bounded number of steps.

A plain name is compared. Any other pattern becomes a regular expression with an atomic group for
each star and the text up to the next. Such groups never backtrack, so time grows at most with
pattern length times path length. (The package `pathspec` does not know `[[:alpha:]]`, and is linear
only with another package's engine.) Git compares bytes: here each byte is a character.
"""

import re
import string
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

MAX_PATTERNS = 10_000  # patterns of one list, above any list that people write
_WORK = 500_000  # steps, of a microsecond at most
_GROUP = 10  # steps to compile a group or a pattern, added to one for each character
_STEP = 500  # characters of a pattern times those of a path, matched in one step

_POSIX = {
    "[:alnum:]": "0-9A-Za-z",
    "[:alpha:]": "A-Za-z",
    "[:blank:]": " \t",
    "[:cntrl:]": "\0-\x1f\x7f",
    "[:digit:]": "0-9",
    "[:graph:]": "!-~",
    "[:lower:]": "a-z",
    "[:print:]": " -~",
    "[:punct:]": re.escape(string.punctuation),
    "[:space:]": " \t-\r",
    "[:upper:]": "A-Z",
    "[:xdigit:]": "0-9A-Fa-f",
}
_LOWER = {ord(letter): letter.lower() for letter in string.ascii_uppercase}
_SPECIAL = re.compile(r"[*?[\\]")
_SIGN = r"(?:\\.|[^\\])"
_MEMBER = rf"(?:\[:[^]]*:\]|{_SIGN}(?:-(?!\]){_SIGN})?)"  # a member of a character class
_MEMBERS = re.compile(_MEMBER, re.DOTALL)
_TOKENS = re.compile(
    rf"""(?P<folders>(?<![^/])\*\*+\\?/)
    |(?P<rest>(?<![^/])\*\*+\Z)
    |(?P<star>\*+)
    |(?P<any>\?)
    |(?P<slash>\\?/)
    |(?P<plain>[^*?/\\[]+)
    |\\(?P<escaped>.)
    |\[(?P<negation>(?>[!^]?))(?P<members>(?>{_MEMBER}(?:(?!\]){_MEMBER})*))\]
    |(?P<nonsense>.)""",
    re.DOTALL | re.VERBOSE,
)


class MatchBudget:
    """Counts down the steps that are left."""

    _left = _WORK

    def spend(self, steps: int) -> None:
        """Take steps off. Raises TimeoutError if too few are left."""
        self._left -= steps
        if self._left < 0:
            raise TimeoutError


class Glob(NamedTuple):
    """A pattern. Without a slash it matches names in any folder below its list's."""

    matches: Callable[[str], object]
    cost: int  # characters that each one of a path is compared with
    takes_back: bool
    is_of_folders: bool
    is_of_names: bool


class GlobList:
    """The patterns of one list; the last one that matches decides."""

    def __init__(self, lines: Iterable[str], budget: MatchBudget, *, folds: bool = False) -> None:
        """Read a list. Raises TimeoutError if it is too long. `folds`: git's `core.ignoreCase`."""
        globs: list[Glob] = []
        for line in lines:
            budget.spend(len(line))
            if (glob := _glob(_octets(line), budget, folds=folds)) is not None:
                globs.append(glob)
            if len(globs) > MAX_PATTERNS:
                raise TimeoutError
        self._globs = globs[::-1]
        self._folds = folds

    def decision(
        self, parts: Sequence[str], budget: MatchBudget, *, is_folder: bool
    ) -> bool | None:
        """Return True if the list names the path, False if it takes it back, None if neither."""
        path = _octets("/".join(parts))
        path = path.translate(_LOWER) if self._folds else path
        name = path.rpartition("/")[2]
        for glob in self._globs:
            text = name if glob.is_of_names else path
            budget.spend(1 + glob.cost * len(text) // _STEP)
            if (is_folder or not glob.is_of_folders) and glob.matches(text):
                return not glob.takes_back
        return None


def _octets(text: str) -> str:
    """Return a character for each byte of the text in UTF-8."""
    return text if text.isascii() else text.encode("utf-8", "surrogatepass").decode("latin-1")


def _glob(line: str, budget: MatchBudget, *, folds: bool) -> Glob | None:
    """Return the pattern of a line; None for a comment or a pattern that matches nothing."""
    text = _trimmed(line)
    if not text or text.startswith("#"):
        return None
    body = text.removeprefix("!").removesuffix("/")
    rest = (text.startswith("!"), text.endswith("/"), "/" not in body)
    path = body.removeprefix("/")
    # Text before the first special sign is compared as it is; the pattern begins there.
    found = _SPECIAL.search(path)
    start = path[: found.start() if found else None]
    start = start.translate(_LOWER) if folds else start
    if found is None:
        return Glob(start.__eq__, 1, *rest)
    try:
        regex = re.escape(start) + "".join(_regex(path[len(start) :], folds=folds))
    except ValueError:  # nonsense
        return None
    budget.spend(len(regex) + _GROUP * (1 + regex.count("(")))
    return Glob(re.compile(regex, re.DOTALL).match, len(regex), *rest)


def _trimmed(line: str) -> str:
    """Return the line without spaces at its end, except one after a backslash."""
    text = line.removesuffix("\r")
    bare = text.rstrip(" ")
    num_slashes = len(bare) - len(bare.rstrip("\\"))
    return bare + " " if num_slashes % 2 and len(bare) < len(text) else bare


def _regex(body: str, *, folds: bool) -> Iterator[str]:
    """Yield the pieces of a pattern's regular expression. Raises ValueError for nonsense."""
    after_star = after_folders = ""  # these close the open groups
    for token in _TOKENS.finditer(body):
        match token.lastgroup:
            case "folders":
                least = "+?" if "\\" in token["folders"] else "*?"
                yield f"{after_folders}(?>(?:[^/]*/){least}"
                after_folders = ")"
            case "star":
                yield f"{after_star}(?>[^/]*?"
                after_star = ")"
            case "slash":
                yield f"/{after_star}"
                after_star = ""
            case "rest":
                yield ".*"
            case "any":
                yield "[^/]"
            case "members":
                yield _class(token["negation"], token["members"], folds=folds)
            case "nonsense":
                raise ValueError
            case "plain":
                yield re.escape(token["plain"].translate(_LOWER) if folds else token["plain"])
            case _:
                yield re.escape(token["escaped"])
    yield rf"\Z{after_star}{after_folders}"


def _class(negation: str, members: str, *, folds: bool) -> str:
    """Translate the text between brackets. Raises ValueError for nonsense."""
    characters = "".join(_member(one, folds=folds) for one in _MEMBERS.findall(members))
    return f"[^/{characters}]" if negation else f"(?!/)[{characters}]"


def _member(text: str, *, folds: bool) -> str:
    """Translate a character, a range, or a class as `[:alpha:]`. Raises ValueError for nonsense."""
    if text.startswith("[:"):
        if text not in _POSIX:
            raise ValueError
        return _POSIX["[:alpha:]" if folds and text == "[:upper:]" else text]
    low, high = text.removeprefix("\\")[0], text[-1]
    # Where git folds case, paths are in lower case, and only ranges are compared with both cases.
    capitals = "".join(one for one in string.ascii_uppercase if low <= one <= high)
    small = capitals.lower() if folds and low != high else ""
    return f"{re.escape(low)}-{re.escape(max(low, high))}{small}"
