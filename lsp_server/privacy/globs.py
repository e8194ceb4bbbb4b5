"""Patterns of `.gitignore` as git reads them, matched within a bounded number of steps.

Most patterns are plain names, which are compared. Any repository can bring others: each becomes a
regular expression of atomic groups, one for each star and what follows it up to the next. What a
group has taken it never takes otherwise, and time grows with pattern times path at most. (The
package `pathspec` makes expressions that go back for ever, and does not know `[[:alpha:]]`.)
"""

import re
import string
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

MAX_PATTERNS = 10_000
_WORK = 500_000  # steps, of a microsecond at most
_GROUP = 10  # steps to compile a group, or a pattern, beside one for each character
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
_SPECIAL = re.compile(r"[*?[\\]")
_SIGN = r"(?:\\.|[^\\])"
_MEMBER = rf"(?:\[:[^][]*:\]|{_SIGN}(?:-(?!\]){_SIGN})?)"  # of a class
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


class _NonsenseError(ValueError):
    """The pattern matches nothing."""


class MatchBudgetError(Exception):
    """Patterns take too many steps to match."""


class MatchBudget:
    """Counts down the steps that are left."""

    def __init__(self, steps: int = _WORK) -> None:
        self._left = steps

    def spend(self, steps: int) -> None:
        """Raises MatchBudgetError if that is too much."""
        self._left -= steps
        if self._left < 0:
            raise MatchBudgetError


class Glob(NamedTuple):
    """One pattern. Without a slash it matches names in any folder below its list's."""

    matches: Callable[[str], object]
    cost: int  # characters to compare each of a path's with
    takes_back: bool
    is_of_folders: bool
    is_of_names: bool


class GlobList:
    """The patterns of one list; the last one that matches decides."""

    def __init__(self, globs: Iterable[Glob] = ()) -> None:
        self._globs = tuple(globs)[::-1]

    @classmethod
    def of(cls, lines: Iterable[str], budget: MatchBudget) -> "GlobList":
        """Read the lines of a list. Raises MatchBudgetError if they are too many or too long."""
        globs = []
        for line in lines:
            budget.spend(len(line))
            if (glob := _glob(line, budget)) is not None:
                globs.append(glob)
            if len(globs) > MAX_PATTERNS:
                raise MatchBudgetError
        return cls(globs)

    @property
    def is_empty(self) -> bool:
        """Whether no path is named."""
        return not self._globs

    def decision(
        self, parts: Sequence[str], budget: MatchBudget, *, is_folder: bool
    ) -> bool | None:
        """True names the path, False takes it back, None says nothing of it."""
        path = "/".join(parts)
        for glob in self._globs:
            text = parts[-1] if glob.is_of_names else path
            budget.spend(1 + glob.cost * len(text) // _STEP)
            if (is_folder or not glob.is_of_folders) and glob.matches(text):
                return not glob.takes_back
        return None


def _glob(line: str, budget: MatchBudget) -> Glob | None:
    """The pattern of a line; None for a comment and for what matches nothing."""
    text = _trimmed(line)
    if not text or text.startswith("#"):
        return None
    body = text.removeprefix("!").removesuffix("/")
    rest = (text.startswith("!"), text.endswith("/"), "/" not in body)
    path = body.removeprefix("/")
    if not _SPECIAL.search(path):
        return Glob(path.__eq__, 1, *rest)
    try:
        regex = "".join(_regex(path))
    except _NonsenseError:
        return None
    budget.spend(len(regex) + _GROUP * (1 + regex.count("(")))
    return Glob(re.compile(regex, re.DOTALL).match, len(regex), *rest)


def _trimmed(line: str) -> str:
    """Without spaces at the end, but those after a backslash."""
    text = line.removesuffix("\r")
    bare = text.rstrip(" ")
    num_slashes = len(bare) - len(bare.rstrip("\\"))
    return bare + " " if num_slashes % 2 and len(bare) < len(text) else bare


def _regex(body: str) -> Iterator[str]:
    """The pieces of what matches as the pattern does. Raises _NonsenseError."""
    after_star = after_folders = ""  # these end the groups that are open
    for token in _TOKENS.finditer(body):
        match token.lastgroup:
            case "folders":
                yield f"{after_folders}(?>(?:[^/]+/)*?"
                after_folders = ")"
            case "star":
                yield f"{after_star}(?>[^/]*?"
                after_star = ")"
            case "slash":
                yield f"/{after_star}"
                after_star = ""
            case "rest":
                yield ".+"
            case "any":
                yield "[^/]"
            case "members":
                yield _class(token["negation"], token["members"])
            case "nonsense":
                raise _NonsenseError
            case _:
                yield re.escape(token["plain"] or token["escaped"])
    yield rf"\Z{after_star}{after_folders}"


def _class(negation: str, members: str) -> str:
    """What stands between brackets. Raises _NonsenseError."""
    characters = "".join(map(_member, _MEMBERS.findall(members)))
    return f"[^/{characters}]" if negation else f"(?!/)[{characters}]"


def _member(text: str) -> str:
    """A character, a range of them, or `[:alpha:]` and its kind. Raises _NonsenseError."""
    if text.startswith("[:"):
        if text not in _POSIX:
            raise _NonsenseError
        return _POSIX[text]
    low, high = text.removeprefix("\\")[0], text[-1]
    return f"{re.escape(low)}-{re.escape(max(low, high))}"
