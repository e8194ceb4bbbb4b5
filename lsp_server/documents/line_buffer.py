"""A text as its lines, edited as LSP edits. Only LF, CR LF and CR end a line."""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Literal

from lsprotocol import types

from engine.common_start import common_ends
from engine.host.protocol import LineSplice

LineEnd = Literal["\n", "\r\n", "\r"]

_UTF16 = "utf-16-le"  # units of two bytes, in which each client can count
_LINE_END = re.compile("(\r\n|\r|\n)")
_SURROGATE = re.compile("[\ud800-\udfff]")
_LINE_ENDS: tuple[LineEnd, ...] = ("\n", "\r\n", "\r")
_BEYOND = 2**31 - 1  # beyond any line's end: the largest integer in LSP
_MOST_SPLICES = 8  # each costs a pass through the lines above it
_MOST_COMPARED = 40_000  # lines between two changes, one by one: 30 ms
_NUM_JUDGED = 100  # last lines that decide the line end


class LineBuffer:
    """Lines and, separately, their line ends; that of the last line is ""."""

    def __init__(self, text: str) -> None:
        self._lines, self._ends = _split(_paired(text))
        self.num_bytes = num_utf8_bytes(_paired(text))

    @property
    def lines(self) -> tuple[str, ...]:
        """The current lines, at least one: an empty text is one empty line."""
        return tuple(self._lines)

    @property
    def text(self) -> str:
        """The whole text, with its own line ends."""
        return "".join(map("".join, zip(self._lines, self._ends, strict=True)))

    @property
    def line_end(self) -> LineEnd:
        """The most frequent end of the last 100 lines; LF wins ties."""
        counts = Counter(self._ends[-_NUM_JUDGED - 1 : -1])
        return max(_LINE_ENDS, key=lambda end: counts[end])

    def apply(self, where: types.Range | None, new_text: str) -> None:
        """Replace a range, or everything. Clamps positions, and sorts the ends of a range."""
        start, end = self._bounds(where)
        lines, first = self._lines, start.line
        head = _units(lines[first], 0, start.character)
        tail = _units(lines[end.line], end.character)
        region = _paired(head + new_text + tail) + self._ends[end.line]
        if first > 0 and self._ends[first - 1] == "\r" and region.startswith("\n"):
            first -= 1  # two line ends become one CR LF
            region = f"{lines[first]}\r{region}"
        self._replace(first, end.line + 1, region)

    def _bounds(self, where: types.Range | None) -> tuple[types.Position, types.Position]:
        beyond = types.Position(len(self._lines) - 1, _BEYOND)
        if where is None:
            return types.Position(0, 0), beyond
        start, end = sorted((where.start, where.end))
        return min(start, beyond), min(end, beyond)

    def _replace(self, first: int, last: int, region: str) -> None:
        lines, ends = _split(region)
        if last < len(self._lines):  # after the region's final line end comes a line that stays
            del lines[-1], ends[-1]
        self.num_bytes -= self._count_bytes(first, last)
        self._lines[first:last] = lines  # a memmove: quick even at 50,000 lines
        self._ends[first:last] = ends
        self.num_bytes += self._count_bytes(first, first + len(lines))

    def _count_bytes(self, first: int, last: int) -> int:
        ends = sum(map(len, self._ends[first:last]))
        return ends + num_utf8_bytes("".join(self._lines[first:last]))


def to_code_points(line: str, character: int) -> int:
    """Count the code points before a UTF-16 unit, which is clamped to the line and rounded down."""
    ends = range(len(line) + 1)
    return bisect_right(ends, character, key=lambda n: from_code_points(line, n)) - 1


def from_code_points(line: str, num_points: int) -> int:
    """Count the UTF-16 units of the first `num_points` code points of `line`."""
    if line.isascii():
        return min(num_points, len(line))
    return len(line[:num_points].encode(_UTF16, "surrogatepass")) // 2


def num_utf8_bytes(text: str) -> int:
    """Return the length of `text` in UTF-8."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _units(line: str, start: int, end: int | None = None) -> str:
    """Slice a line by UTF-16 units, which may split surrogate pairs."""
    if line.isascii():
        return line[start:end]
    units = line.encode(_UTF16, "surrogatepass")
    return units[2 * start : end and 2 * end].decode(_UTF16, "surrogatepass")


def _split(text: str) -> tuple[list[str], list[str]]:
    if "\r" not in text:  # the usual case, at a tenth of the cost
        lines = text.split("\n")
        return lines, ["\n"] * (len(lines) - 1) + [""]
    parts = _LINE_END.split(text)
    return parts[::2], [*parts[1::2], ""]


def _paired(text: str) -> str:
    """Join adjacent halves of surrogate pairs into characters, as the client sees them."""
    if text.isascii() or not _SURROGATE.search(text):
        return text
    return text.encode(_UTF16, "surrogatepass").decode(_UTF16, "surrogatepass")


def differences(old: Sequence[str], new: Sequence[str]) -> tuple[LineSplice, ...]:
    """Return splices that turn `old` into `new`, the last one first, with rows of `old`."""
    start, tail = common_ends(old, new)
    old, new = old[start : len(old) - tail], new[start : len(new) - tail]
    # Unchanged lines are left out if lines are added or removed only at the first or last change.
    shifts = {0, len(new) - len(old)} if min(len(old), len(new)) <= _MOST_COMPARED else ()
    ways = [_between(old, new, _equal(old, new, shift)) for shift in shifts]
    few = [way for way in ways if len(way) <= _MOST_SPLICES]
    best = min([_between(old, new, []), *few], key=_num_lines)
    return tuple(LineSplice(start + one.start, start + one.end, one.lines) for one in best)


def _equal(old: Sequence[str], new: Sequence[str], shift: int) -> list[tuple[int, int]]:
    """Return the rows of equal lines in `old` and `new`, those of `new` larger by `shift`."""
    rows = range(max(0, -shift), min(len(old), len(new) - shift))
    return [(row, row + shift) for row in rows if old[row] == new[row + shift]]


def _between(
    old: Sequence[str], new: Sequence[str], equal: list[tuple[int, int]]
) -> list[LineSplice]:
    ends = [(-1, -1), *equal, (len(old), len(new))]
    splices = [
        LineSplice(above + 1, below, tuple(new[new_above + 1 : new_below]))
        for (above, new_above), (below, new_below) in pairwise(ends)
        if below - above > 1 or new_below - new_above > 1
    ]
    return splices[::-1]


def _num_lines(splices: Iterable[LineSplice]) -> int:
    return sum(splice.end - splice.start + len(splice.lines) for splice in splices)
