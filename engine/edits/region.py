"""The part of a file that Zeta may change, and text around it, chosen by numbers of tokens."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from engine.edits.block import Block
from engine.edits.edit_prompt import EditedDocument

_EDITABLE, _AROUND = 350, 150  # tokens
_EVEN = 262  # of the editable ones: taken alike above and below the cursor
_TOKEN_BYTES = 3
_UP, _DOWN = -1, 1


@dataclass(frozen=True, slots=True)
class Region:
    """Lines that may change, and what is shown around them."""

    block: Block
    shown_from: int  # the first line
    above: str  # lines with their ends
    below: str  # lines, each behind a line end

    @classmethod
    def around(cls, document: EditedDocument, taken: Sequence[str]) -> Self:
        """The region at the cursor, which must not contain what is `taken`, as Zed chooses it.

        Raises RefusedEditError.
        """
        lines = document.lines
        span = _Span(lines, document.row, document.row + 1)
        left = span.grow(_EVEN - span.cost(document.row), (_DOWN, _UP), is_even=True)
        span.grow(left + _EDITABLE - _EVEN, (_UP, _DOWN))
        block = Block.of(document, span.first, span.end, taken)
        span.grow(_AROUND, (_UP, _DOWN))
        end = block.first + len(block.lines)
        return cls(
            block=block,
            shown_from=span.first,
            above="".join(f"{line}\n" for line in lines[span.first : block.first]),
            below="".join(f"\n{line}" for line in lines[end : span.end]),
        )


@dataclass(slots=True)
class _Span:
    """Lines `first` up to, not including, `end`, which grow."""

    lines: Sequence[str]
    first: int
    end: int

    def cost(self, row: int) -> int:
        """Return the tokens of a line, roughly."""
        return max(1, len(self.lines[row].encode("utf-8", "replace")) // _TOKEN_BYTES)

    def grow(self, budget: int, directions: tuple[int, int], *, is_even: bool = False) -> int:
        """Take lines on both sides in turn; return the tokens left.

        If it is to be even, the first line that costs more than what is left ends it.
        """
        budget, is_growing = max(0, budget), True
        while is_growing:
            is_growing = False
            for direction in directions:
                row = self.first - 1 if direction == _UP else self.end
                if not budget or not 0 <= row < len(self.lines):
                    continue
                if (cost := self.cost(row)) <= budget:
                    self.first, self.end = min(self.first, row), max(self.end, row + 1)
                    budget, is_growing = budget - cost, True
                elif is_even:
                    return budget
        return budget
