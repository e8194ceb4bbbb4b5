"""The passage of another file that reads like the text around the cursor.

Where the same lines stand, what follows them there is often what is wanted here: the version before
of the same file, a sibling class, another test. A few whole lines must agree, so that it is rarely
found and then seldom wrong.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from engine.names import steady_before, steady_behind

_COMPARED = 8  # lines above and below the cursor, without blank ones
_LEAST_LINES, _LEAST_CHARS = 3, 48  # that agree
_REACH = 24  # lines of a passage that only its beginning or its end is known of
_LONGEST = 48  # lines between what agrees above and what agrees below
_SHOWN = 3  # of the lines that agree


@dataclass(frozen=True, slots=True)
class CursorLines:
    """Lines around a cursor without their indentation, none of them blank.

    Above they end, and below they begin, at an anchor that stays while the user types some lines.
    """

    above: tuple[str, ...]
    below: tuple[str, ...]

    @classmethod
    def around(cls, prefix: str, suffix: str) -> Self:
        """The next lines above and below."""
        above = [text for line in steady_before(prefix) if (text := line.strip())]
        below = [text for line in steady_behind(suffix) if (text := line.strip())]
        return cls(tuple(above[-_COMPARED:]), tuple(below[:_COMPARED]))


@dataclass(frozen=True, slots=True)
class Passage:
    """Lines of a text, by their numbers, and how many characters of its rim agree."""

    lines: range
    agreeing: int


def find_passage(text: str, cursor: CursorLines) -> Passage | None:
    """Return the passage of `text` that belongs between the cursor's lines, if one does."""
    nearest = cursor.above[-_LEAST_LINES:], cursor.below[:_LEAST_LINES]
    if not any(lines and all(line in text for line in lines) for lines in nearest):
        return None  # the usual case, and told apart quickly
    filled = [(n, line) for n, one in enumerate(text.split("\n")) if (line := one.strip())]
    numbers, lines = [n for n, _ in filled], [line for _, line in filled]
    above = _longest_run(lines[::-1], cursor.above[::-1])
    below = _longest_run(lines, cursor.below)
    if above is None and below is None:
        return None
    end = None if above is None else len(lines) - 1 - above.start  # the last line that agrees
    start = None if below is None else below.start  # the first one
    return Passage(_between(numbers, end, start), sum(run.chars for run in (above, below) if run))


@dataclass(frozen=True, slots=True)
class _Run:
    """Where lines agree from, and how many characters they have."""

    start: int
    chars: int


def _longest_run(lines: Sequence[str], wanted: Sequence[str]) -> _Run | None:
    """Where most of `wanted` follows from its first line on; the first of equals."""
    best: _Run | None = None
    for start, line in enumerate(lines):
        if not wanted or line != wanted[0]:
            continue
        count = 0
        while (
            count < len(wanted)
            and start + count < len(lines)
            and lines[start + count] == wanted[count]
        ):
            count += 1
        chars = sum(map(len, wanted[:count]))
        is_enough = count >= _LEAST_LINES and chars >= _LEAST_CHARS
        if is_enough and (best is None or chars > best.chars):
            best = _Run(start, chars)
    return best


def _between(numbers: Sequence[int], end: int | None, start: int | None) -> range:
    """The lines from the filled line `end` to the filled line `start`, with some of each side."""
    if end is not None and (start is None or not 0 < numbers[start] - numbers[end] <= _LONGEST):
        first, last = end - _SHOWN + 1, end + _REACH
    elif end is not None and start is not None:
        first, last = end - _SHOWN + 1, start + _SHOWN - 1
    else:
        assert start is not None  # noqa: S101 - one of them is there
        first, last = start - _REACH, start + _SHOWN - 1
    return range(numbers[max(0, first)], numbers[min(last, len(numbers) - 1)] + 1)
