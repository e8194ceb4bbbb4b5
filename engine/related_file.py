"""An open file that says something about the names around the cursor, and what is taken of it."""

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from math import sqrt

from engine.request import Buffer, Snippet
from engine.text.lines import indent_of, pieces
from engine.text.names import CursorNames, is_import, telling_names

_IMPORTED = 2.0  # times the worth of what the file at the cursor imports
_INHERITED = 0.5  # of the worth of the line in whose block a line stands


@dataclass(frozen=True, slots=True)
class LineIndex:
    """Takes a few bytes per character of the text, which it does not hold."""

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
        """For each line what it says about `names`, plus half of the worth of the line that opens its block."""
        worths = [0.0] * len(self.headers)
        for name in sorted(
            names
        ):  # a sum of floats depends on the order, which a set has by chance
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
    """A buffer, what its best line is worth, and the lines that are taken of it."""

    buffer: Buffer
    index: LineIndex
    worths: Sequence[float]  # of its lines
    worth: float
    taken: set[int] = field(default_factory=set)
    tokens: int = 0  # of the passage that is taken, and of the name before it
    is_whole: bool = False

    @classmethod
    def of(cls, buffer: Buffer, index: LineIndex, names: CursorNames) -> "RelatedFile":
        """Look up in a buffer with its index what it says about names."""
        factor = _IMPORTED if names.imports(buffer.path) else 1.0
        worths = [factor * worth for worth in index.worths([*names.near, *names.imported])]
        return cls(buffer, index, worths, max(worths, default=0.0))

    def leave_out(self, shown: Iterable[Snippet]) -> None:
        """Lines that are shown already are worth nothing."""
        known = {line for one in shown if one.path == self.buffer.path for line in pieces(one.text)}
        if known:
            lines = enumerate(self.worths)
            self.worths = [0.0 if self.line(n) in known else worth for n, worth in lines]
            self.worth = max(self.worths)

    def take_whole(self) -> None:
        """All of its lines are taken."""
        self.taken, self.is_whole = set(range(len(self.worths))), True

    @property
    def name(self) -> str:
        """What stands before it, of the length of its path and the token that begins a file."""
        return f"{self.buffer.path}\n\n"

    @property
    def text(self) -> str:
        """What is taken of it, whole lines in their order."""
        return "".join(map(self.line, sorted(self.taken)))

    def line(self, number: int) -> str:
        """A line with its line end."""
        cuts = self.index.cuts
        return self.buffer.text[cuts[number] : cuts[number + 1]]

    def lines(self) -> list[tuple[float, int]]:
        """What lines are worth for their length, and their numbers."""
        cuts = self.index.cuts
        return [
            (worth / sqrt(cuts[line + 1] - cuts[line]), line)
            for line, worth in enumerate(self.worths)
            if worth
        ]
