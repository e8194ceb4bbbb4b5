r"""A text as its lines, edited as LSP edits. Only LF, CR LF and CR end a line.

An edit costs the lines that it touches and a `memmove` of the list: far below a keystroke even at
50,000 lines. Form feeds, U+2028 and their kind, where `str.splitlines` would split, stay inside.
"""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Literal

from lsprotocol import types

from engine.common_start import common_end, common_start
from engine.host.protocol import LineSplice

LineEnd = Literal["\n", "\r\n", "\r"]

_UTF16 = "utf-16-le"  # units of two bytes, in which each client can count
LINE_END = re.compile("(\r\n|\r|\n)")
_SURROGATE = re.compile("[\ud800-\udfff]")
_LINE_ENDS: tuple[LineEnd, ...] = ("\n", "\r\n", "\r")
_BEYOND = 2**31 - 1  # of a line's characters, the largest number of LSP
_NUM_JUDGED = 100  # lines: what was written last shows what is wanted next


class LineBuffer:
    """Lines without their ends, and the ends apart; the last line has the end ""."""

    def __init__(self, text: str) -> None:
        self._lines, self._ends = _split(_paired(text))
        self._frozen: tuple[str, ...] | None = None
        self.num_bytes = num_utf8_bytes(_paired(text))

    @property
    def lines(self) -> tuple[str, ...]:
        """The lines as they are now; made when first asked for after an edit."""
        if self._frozen is None:
            self._frozen = tuple(self._lines)
        return self._frozen

    @property
    def num_lines(self) -> int:
        """At least 1: an empty text is one empty line."""
        return len(self._lines)

    @property
    def line_end(self) -> LineEnd:
        """The most frequent end of the last 100 lines."""
        return most_frequent(self._ends[-_NUM_JUDGED - 1 : -1])

    def apply(self, where: types.Range | None, new_text: str) -> None:
        """Replace a range, or everything, by `new_text`.

        Positions outside the text are clamped, and the ends of a range may come in either order.
        """
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
        beyond = types.Position(self.num_lines - 1, _BEYOND)
        if where is None:
            return types.Position(0, 0), beyond
        start, end = sorted((where.start, where.end))
        return min(start, beyond), min(end, beyond)

    def _replace(self, first: int, last: int, region: str) -> None:
        """Make lines `first` to `last` (excluded) those of `region`, their ends included."""
        lines, ends = _split(region)
        if last < self.num_lines:  # the region ends in a line end, and the next line is not ours
            del lines[-1], ends[-1]
        self.num_bytes -= self._count_bytes(first, last)
        self._lines[first:last] = lines
        self._ends[first:last] = ends
        self.num_bytes += self._count_bytes(first, first + len(lines))
        self._frozen = None

    def _count_bytes(self, first: int, last: int) -> int:
        ends = sum(map(len, self._ends[first:last]))
        return ends + num_utf8_bytes("".join(self._lines[first:last]))


def to_code_points(line: str, character: int) -> int:
    """Code points of `line` before a client's `character`, which counts UTF-16 units.

    What points inside a code point means its start, what points beyond the line its end.
    """
    ends = range(len(line) + 1)
    return bisect_right(ends, character, key=lambda n: from_code_points(line, n)) - 1


def from_code_points(line: str, num_points: int) -> int:
    """The UTF-16 units of the first `num_points` code points of `line`."""
    if line.isascii():
        return min(num_points, len(line))
    return len(line[:num_points].encode(_UTF16, "surrogatepass")) // 2


def most_frequent(ends: Iterable[str]) -> LineEnd:
    """Which line end there is most of; LF wins ties."""
    counts = Counter(ends)
    return max(_LINE_ENDS, key=lambda end: counts[end])


def num_utf8_bytes(text: str) -> int:
    """The length of `text` in UTF-8."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _units(line: str, start: int, end: int | None = None) -> str:
    """A line from one UTF-16 unit to another, which may be halves of surrogate pairs."""
    if line.isascii():
        return line[start:end]
    units = line.encode(_UTF16, "surrogatepass")
    return units[2 * start : end and 2 * end].decode(_UTF16, "surrogatepass")


def _split(text: str) -> tuple[list[str], list[str]]:
    """The lines, and their ends."""
    if "\r" not in text:  # the usual case, at a tenth of the cost
        lines = text.split("\n")
        return lines, ["\n"] * (len(lines) - 1) + [""]
    parts = LINE_END.split(text)
    return parts[::2], [*parts[1::2], ""]


def _paired(text: str) -> str:
    """`text` with halves of a surrogate pair that met as one character, as the client sees it."""
    if text.isascii() or not _SURROGATE.search(text):
        return text
    return text.encode(_UTF16, "surrogatepass").decode(_UTF16, "surrogatepass")


def difference(old: Sequence[str], new: Sequence[str]) -> LineSplice:
    """The smallest splice that turns the lines `old` into `new`."""
    start = common_start(old, new)
    tail = common_end(old[start:], new[start:])
    return LineSplice(start, len(old) - tail, tuple(new[start : len(new) - tail]))
