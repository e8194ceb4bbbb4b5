"""Patterns of `.gitignore` as git reads them, matched within a bounded number of steps.

Any repository can bring patterns. As regular expressions they could take for ever, so they are
matched with one position to return to, the last star: time grows with pattern times name at most.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

MAX_PATTERNS = 10_000
_WORK = 500_000  # steps, together some 100 ms
_POSIX: dict[str, Callable[[str], bool]] = {
    "alnum": str.isalnum,
    "alpha": str.isalpha,
    "blank": " \t".__contains__,
    "digit": str.isdecimal,
    "lower": str.islower,
    "punct": "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~".__contains__,
    "space": str.isspace,
    "upper": str.isupper,
    "xdigit": "0123456789abcdefABCDEF".__contains__,
}


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


@dataclass(frozen=True, slots=True)
class _Star:
    """Any number of characters, or of folders where it stands for a whole segment."""


@dataclass(frozen=True, slots=True)
class _Class:
    """One character that any of the tests accepts, or none of them."""

    tests: tuple[Callable[[str], bool], ...] = ()
    is_negated: bool = True

    def accepts(self, character: str, budget: MatchBudget) -> bool:
        """Whether it is of this class."""
        budget.spend(len(self.tests))
        return any(test(character) for test in self.tests) != self.is_negated


_STAR = _Star()
_ANY = _Class()
_Part = TypeVar("_Part")
_Token = str | _Class | _Star
_Segment = str | tuple[_Token, ...] | _Star  # a str is a name without signs


class _NonsenseError(ValueError):
    """The pattern matches nothing."""


@dataclass(frozen=True, slots=True)
class Glob:
    """One pattern. Without a slash it matches names in any folder below its list's."""

    segments: tuple[_Segment, ...]
    takes_back: bool
    is_of_folders: bool
    is_of_names: bool

    def matches(self, parts: Sequence[str], budget: MatchBudget, *, is_folder: bool) -> bool:
        """Whether it names the path below its list's folder. Raises MatchBudgetError."""
        budget.spend(1)
        if self.is_of_folders and not is_folder:
            return False
        if self.is_of_names:
            return _is_name(self.segments[0], parts[-1], budget)
        return _follows(self.segments, parts, budget, _is_name)


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
            if (glob := _glob(line)) is not None:
                globs.append(glob)
        if len(globs) > MAX_PATTERNS:
            raise MatchBudgetError
        return cls(globs)

    def decision(
        self, parts: Sequence[str], budget: MatchBudget, *, is_folder: bool
    ) -> bool | None:
        """True names the path, False takes it back, None says nothing of it."""
        for glob in self._globs:
            if glob.matches(parts, budget, is_folder=is_folder):
                return not glob.takes_back
        return None


def _glob(line: str) -> Glob | None:
    """The pattern of a line; None for a comment and for what matches nothing."""
    text = _trimmed(line)
    if not text or text.startswith("#"):
        return None
    takes_back = text.startswith("!")
    body = text.removeprefix("!").removesuffix("/")
    is_of_names = "/" not in body
    try:
        segments = tuple(_segments(body.removeprefix("/")))
    except _NonsenseError:
        return None
    if is_of_names:
        segments = ((_STAR,),) if segments[0] is _STAR else segments
    elif segments[-1] is _STAR:
        segments = (*segments, (_STAR,))  # what is in a folder, not the folder
    return Glob(segments, takes_back, text.endswith("/"), is_of_names)


def _trimmed(line: str) -> str:
    """Without spaces at the end, but those after a backslash."""
    text = line.removesuffix("\r")
    bare = text.rstrip(" ")
    num_slashes = len(bare) - len(bare.rstrip("\\"))
    return bare + " " if num_slashes % 2 and len(bare) < len(text) else bare


def _segments(body: str) -> Iterator[_Segment]:
    if not any(sign in body for sign in "*?[\\"):
        yield from body.split("/")
        return
    tokens: list[_Token] = []
    index = 0
    while index < len(body):
        token, index = _token(body, index)
        if token == "/":
            yield _segment(tokens)
            tokens = []
        else:
            tokens.append(token)
    yield _segment(tokens)


def _segment(tokens: list[_Token]) -> _Segment:
    if len(tokens) > 1 and all(token is _STAR for token in tokens):
        return _STAR
    plain = [token for token in tokens if isinstance(token, str)]
    return "".join(plain) if len(plain) == len(tokens) else tuple(tokens)


def _token(body: str, index: int) -> tuple[_Token, int]:
    """The token at an index, and where the next one begins. Raises _NonsenseError."""
    sign = body[index]
    if sign == "*":
        return _STAR, index + 1
    if sign == "?":
        return _ANY, index + 1
    if sign == "[":
        return _class(body, index + 1)
    if sign == "\\":
        if index + 1 == len(body):
            raise _NonsenseError
        return body[index + 1], index + 2
    return sign, index + 1


def _class(body: str, index: int) -> tuple[_Class, int]:
    """What stands between brackets. Raises _NonsenseError."""
    is_negated = body[index : index + 1] in ("!", "^")
    index += is_negated
    tests: list[Callable[[str], bool]] = []
    first = index
    while index == first or body[index : index + 1] != "]":
        test, index = _member(body, index)
        tests.append(test)
    return _Class(tuple(tests), is_negated), index + 1


def _member(body: str, index: int) -> tuple[Callable[[str], bool], int]:
    """A character, a range of them, or `[:alpha:]` and its kind. Raises _NonsenseError."""
    if body.startswith("[:", index):
        end = body.find(":]", index + 2)
        test = _POSIX.get(body[index + 2 : max(end, index)])
        if test is None:
            raise _NonsenseError
        return test, end + 2
    low, index = _literal(body, index)
    if body[index : index + 1] != "-" or body[index + 1 : index + 2] in ("]", ""):
        return low.__eq__, index
    high, index = _literal(body, index + 1)
    return lambda character: low <= character <= high, index


def _literal(body: str, index: int) -> tuple[str, int]:
    index += body.startswith("\\", index)
    if index >= len(body):
        raise _NonsenseError
    return body[index], index + 1


def _is_name(segment: _Segment, name: str, budget: MatchBudget) -> bool:
    if isinstance(segment, str):
        return segment == name
    if isinstance(segment, _Star):
        return True
    first, last = segment[0], segment[-1]
    if isinstance(first, str) and name[:1] != first:
        return False
    if isinstance(last, str) and name[-1:] != last:
        return False
    return _follows(segment, name, budget, _is_character)


def _is_character(token: _Token, character: str, budget: MatchBudget) -> bool:
    if isinstance(token, _Class):
        return token.accepts(character, budget)
    return token == character


def _follows(
    pattern: Sequence[_Part],
    text: Sequence[str],
    budget: MatchBudget,
    is_like: Callable[[_Part, str, MatchBudget], bool],
) -> bool:
    """Match part by part; a star takes as little as it can, and the last one takes more."""
    part_index = index = 0
    star, resume = -1, 0
    while index < len(text):
        budget.spend(1)
        part = pattern[part_index] if part_index < len(pattern) else None
        if part is _STAR:
            star, resume = part_index, index
            part_index += 1
        elif part is not None and is_like(part, text[index], budget):
            part_index, index = part_index + 1, index + 1
        elif star >= 0:
            resume += 1
            part_index, index = star + 1, resume
        else:
            return False
    return all(part is _STAR for part in pattern[part_index:])
