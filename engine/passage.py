"""Finds the passage of another file or version that reads like the text around the cursor."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Self

_COMPARED = 8  # lines above and below the cursor, without blank ones
_LEAST_LINES, _LEAST_CHARS = 3, 48  # that have to agree
_REACH = 24  # lines of a passage with one known end
_LONGEST = 48  # lines between the agreeing lines above and below
_SHOWN = 3  # agreeing lines that a passage shows at each known end
_MOST_RUNS = 64  # places examined in a text


@dataclass(frozen=True, slots=True)
class CursorLines:
    """Filled lines on each side of a cursor, outwards, stripped; none if they say too little."""

    above: tuple[str, ...]
    below: tuple[str, ...]

    @classmethod
    def around(cls, before: Sequence[str], behind: Sequence[str]) -> Self:
        """Take the nearest of the lines `before` and `behind` the cursor."""
        return cls(_nearest(reversed(before)), _nearest(behind))


@dataclass(frozen=True, slots=True)
class Passage:
    """A passage of a text, and how well it agrees with the lines at the cursor."""

    lines: range  # line numbers, those next to the agreeing lines first
    agreeing: int  # characters
    is_enclosed: bool = False  # both sides agree


def find_passage(text: str, cursor: CursorLines) -> Passage | None:
    """Return the passage of `text` that belongs between the cursor's lines, if one does."""
    if not (_stands_in(text, cursor.above) or _stands_in(text, cursor.below)):
        return None
    filled = [(n, line) for n, one in enumerate(text.split("\n")) if (line := one.strip())]
    numbers, lines = [n for n, _ in filled], [line for _, line in filled]
    last = len(lines) - 1
    above = [_Run(last - run.at, run.chars) for run in _runs(lines[::-1], cursor.above)]
    below = _runs(lines, cursor.below)
    pairs = [
        (one.chars + other.chars, one.at, other.at)
        for one in above
        for other in below
        if 0 < numbers[other.at] - numbers[one.at] <= _LONGEST
    ]
    if pairs:
        chars, end, start = max(pairs)
        span = _span(numbers, end - _SHOWN + 1, start + _SHOWN - 1)
        return Passage(span, chars, is_enclosed=True)
    if above:
        run = above[0]
        return Passage(_span(numbers, run.at - _SHOWN + 1, run.at + _REACH), run.chars)
    if below:
        run = below[0]
        return Passage(_span(numbers, run.at - _REACH, run.at + _SHOWN - 1)[::-1], run.chars)
    return None


@dataclass(frozen=True, slots=True)
class _Run:
    """Agreeing lines: the place of the one nearest to the cursor, and the characters of all."""

    at: int
    chars: int


def _nearest(lines: Iterable[str]) -> tuple[str, ...]:
    filled = (text for line in lines if (text := line.strip()))
    nearest = tuple(islice(filled, _COMPARED))
    return nearest if _core(nearest) else ()


def _core(side: Sequence[str]) -> Sequence[str]:
    """The lines that have to agree at least; none if all together say too little."""
    for count in range(_LEAST_LINES, len(side) + 1):
        if sum(map(len, side[:count])) >= _LEAST_CHARS:
            return side[:count]
    return ()


def _stands_in(text: str, side: Sequence[str]) -> bool:
    """Check quickly whether the text has the lines at all, which is rare."""
    return bool(side) and all(line in text for line in sorted(_core(side), key=len, reverse=True))


def _runs(lines: Sequence[str], side: Sequence[str]) -> list[_Run]:
    """Places where enough lines of `side` agree from its first one on, the longest first."""
    starts = (at for at, line in enumerate(lines) if side and line == side[0])
    found = [_Run(at, _agreeing(lines, at, side)) for at in islice(starts, _MOST_RUNS)]
    least = sum(map(len, _core(side)))
    return sorted((run for run in found if run.chars >= least), key=lambda run: -run.chars)


def _agreeing(lines: Sequence[str], at: int, side: Sequence[str]) -> int:
    count = 0
    while count < min(len(side), len(lines) - at) and lines[at + count] == side[count]:
        count += 1
    return sum(map(len, side[:count]))


def _span(numbers: Sequence[int], first: int, last: int) -> range:
    """Line numbers from the `first` filled line to the `last`, within the text."""
    return range(numbers[max(0, first)], numbers[min(last, len(numbers) - 1)] + 1)
