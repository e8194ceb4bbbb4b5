"""An open file that says something about the names around the cursor, and what is taken of it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import sqrt

from engine.line_index import LineIndex
from engine.names import CursorNames
from engine.request import Buffer, Snippet
from engine.stopping.lines import pieces

_IMPORTED = 2.0  # times the worth of what the file at the cursor imports


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

    def leave_out(self, shown: Sequence[Snippet]) -> None:
        """Lines that are shown already are worth nothing."""
        known = {line for one in shown if one.path == self.buffer.path for line in pieces(one.text)}
        if known:
            lines = (self.index.line(n, self.buffer.text) for n in range(self.index.num_lines))
            pairs = zip(self.worths, lines, strict=True)
            self.worths = [0.0 if line in known else worth for worth, line in pairs]
            self.worth = max(self.worths)

    def take_whole(self) -> None:
        """All of its lines are taken."""
        self.taken, self.is_whole = set(range(self.index.num_lines)), True

    @property
    def name(self) -> str:
        """What stands before it, of the length of its path and the token that begins a file."""
        return f"{self.buffer.path}\n\n"

    @property
    def text(self) -> str:
        """What is taken of it, whole lines in their order."""
        return "".join(self.index.line(line, self.buffer.text) for line in sorted(self.taken))

    def lines(self) -> list[tuple[float, int]]:
        """What lines are worth for their length, and their numbers."""
        cuts = self.index.cuts
        return [
            (worth / sqrt(cuts[line + 1] - cuts[line]), line)
            for line, worth in enumerate(self.worths)
            if worth
        ]
