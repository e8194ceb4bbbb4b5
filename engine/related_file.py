"""An open file that mentions names around the cursor, and the lines taken from it."""

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from math import sqrt

from engine.request import Buffer, Snippet
from engine.text.lines import indent_of, pieces
from engine.text.names import CursorNames, is_import, telling_names

_IMPORTED = 2.0  # factor for the lines of files that the file at the cursor imports
_INHERITED = 0.5  # share of its worth that a block's first line adds to the lines in it


@dataclass(frozen=True, slots=True)
class LineIndex:
    """An index of a text's lines: a few bytes per character, without the text itself."""

    # In quotes, as arrays are generic only from Python 3.12 on.
    cuts: "array[int]"  # where lines begin, and the end of the text
    headers: "array[int]"  # for each line, the last line before it that is less indented; -1: none
    of_name: "dict[str, array[int]]"  # lines that hold a name, ascending

    def block_of(self, number: int) -> list[int]:
        """A line and the lines that open its blocks, outwards."""
        lines = []
        while number >= 0:
            lines.append(number)
            number = self.headers[number]
        return lines

    def worths(self, names: Iterable[str]) -> list[float]:
        """Return each line's worth for `names`, plus half the worth of its block's first line."""
        worths = [0.0] * len(self.headers)
        for name in sorted(names):  # a set's order is random, and sums of floats depend on it
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
        depth = indent_of(line) if line.strip() else None
        while depth is not None and open_blocks and open_blocks[-1][0] >= depth:
            open_blocks.pop()
        headers.append(open_blocks[-1][1] if open_blocks and depth is not None else -1)
        if depth is not None:
            open_blocks.append((depth, number))
        for name in () if is_import(line) else telling_names([line]):
            of_name.setdefault(name, array("L")).append(number)
    return LineIndex(array("L", accumulate(map(len, lines), initial=0)), headers, of_name)


@dataclass(slots=True, eq=False)
class RelatedFile:
    """A buffer, the worth of its best line, and the lines taken from it."""

    buffer: Buffer
    index: LineIndex
    worths: Sequence[float]  # of its lines
    worth: float
    taken: set[int] = field(default_factory=set)
    tokens: int = 0  # of the passage taken and the name before it
    is_whole: bool = False

    @classmethod
    def of(cls, buffer: Buffer, index: LineIndex, names: CursorNames) -> "RelatedFile":
        """Rate the lines of a buffer by the names in them."""
        factor = _IMPORTED if names.imports(buffer.path) else 1.0
        worths = [factor * worth for worth in index.worths([*names.near, *names.imported])]
        return cls(buffer, index, worths, max(worths, default=0.0))

    def leave_out(self, shown: Iterable[Snippet]) -> None:
        """Drop the worth of lines that are shown already."""
        known = {line for one in shown if one.path == self.buffer.path for line in pieces(one.text)}
        if known:
            lines = enumerate(self.worths)
            self.worths = [0.0 if self.line(n) in known else worth for n, worth in lines]
            self.worth = max(self.worths)

    @property
    def name(self) -> str:
        """A text as long as the file's header: its path and the token that begins a file."""
        return f"{self.buffer.path}\n\n"

    @property
    def text(self) -> str:
        """The lines taken, in their order."""
        return "".join(map(self.line, sorted(self.taken)))

    def line(self, number: int) -> str:
        """A line with its line end."""
        cuts = self.index.cuts
        return self.buffer.text[cuts[number] : cuts[number + 1]]

    def lines(self) -> list[tuple[float, int]]:
        """Return the worth of each line for its length, and its number."""
        cuts = self.index.cuts
        return [
            (worth / sqrt(cuts[line + 1] - cuts[line]), line)
            for line, worth in enumerate(self.worths)
            if worth
        ]
