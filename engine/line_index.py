"""An index of a text's lines: the names on each, and the block that it stands in."""

from array import array
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate

from engine.names import indent, is_import, names_in
from engine.stopping.lines import pieces

_MOST_CACHED = 256  # texts
_MOST_CACHED_CHARS = 500_000  # of each
_INHERITED = 0.5  # of the worth of the line in whose block a line stands


@dataclass(frozen=True, slots=True)
class LineIndex:
    """Takes a few bytes per character of the text, which it does not hold."""

    # In quotes, as arrays are generic only from Python 3.12 on.
    cuts: "array[int]"  # where lines begin, and the end of the text
    headers: "array[int]"  # for each line, the last line before it that is less indented; -1: none
    of_name: "dict[str, array[int]]"  # lines that hold a name, ascending

    @property
    def num_lines(self) -> int:
        """Lines of the text."""
        return len(self.headers)

    def line(self, number: int, text: str) -> str:
        """A line with its line end; `text` is the whole text."""
        return text[self.cuts[number] : self.cuts[number + 1]]

    def block_of(self, number: int) -> list[int]:
        """A line and the lines that open its blocks, outwards."""
        lines = []
        while number >= 0:
            lines.append(number)
            number = self.headers[number]
        return lines

    def worths(self, names: Iterable[str]) -> list[float]:
        """For each line what it says about `names`, plus half of the worth of the line that opens its block."""
        worths = [0.0] * self.num_lines
        for name in names:
            lines = self.of_name.get(name, ())
            for line in lines:
                worths[line] += 1 / len(lines)
        for line, header in enumerate(self.headers):
            if header >= 0:
                worths[line] += _INHERITED * worths[header]
        return worths


def line_index(text: str) -> LineIndex:
    """Index a text."""
    lines = pieces(text)
    of_name: dict[str, array[int]] = {}
    headers, open_blocks = array("l"), list[tuple[int, int]]()
    for number, line in enumerate(lines):
        depth = indent(line) if line.strip() else None
        while depth is not None and open_blocks and open_blocks[-1][0] >= depth:
            open_blocks.pop()
        headers.append(open_blocks[-1][1] if open_blocks and depth is not None else -1)
        if depth is not None:
            open_blocks.append((depth, number))
        for name in () if is_import(line) else names_in([line]):
            of_name.setdefault(name, array("L")).append(number)
    return LineIndex(array("L", accumulate(map(len, lines), initial=0)), headers, of_name)


_kept = lru_cache(maxsize=_MOST_CACHED)(line_index)


def cached_line_index(text: str) -> LineIndex:
    """Index a text once: a buffer's text is one object from one edit to the next."""
    return line_index(text) if len(text) > _MOST_CACHED_CHARS else _kept(text)


def forget_line_indexes() -> None:
    """Drop the cached indexes."""
    _kept.cache_clear()
