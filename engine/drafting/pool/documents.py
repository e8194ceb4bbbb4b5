"""Documents as pieces of the token log, in the order in which a reader meets them."""

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple, NewType

from engine.drafting.tree import Source

DocumentId = NewType("DocumentId", int)


class Piece(NamedTuple):
    """Slots `low` to `high`, the end excluded; never empty."""

    low: int
    high: int


class Span(NamedTuple):
    """Token positions `start` to `end` of a document, the end excluded."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class PoolDocument:
    """A document of one source; `name` is the caller's, for reports."""

    name: str
    source: Source
    pieces: tuple[Piece, ...]
    starts: tuple[int, ...]  # position of each piece's first token, and the length

    @classmethod
    def of(cls, name: str, source: Source, pieces: tuple[Piece, ...]) -> "PoolDocument":
        """Make a document of pieces."""
        starts = accumulate((piece.high - piece.low for piece in pieces), initial=0)
        return cls(name, source, pieces, tuple(starts))

    @property
    def length(self) -> int:
        """Tokens."""
        return self.starts[-1]

    @property
    def newest_slot(self) -> int:
        """The slot written last, or -1 of an empty document."""
        return max((piece.high for piece in self.pieces), default=0) - 1

    def piece_at(self, position: int) -> Span:
        """The positions of the piece that holds a token."""
        index = bisect_right(self.starts, position) - 1
        return Span(self.starts[index], self.starts[index + 1])

    def slot(self, position: int) -> int:
        """The slot of a token."""
        index = bisect_right(self.starts, position) - 1
        return self.pieces[index].low + position - self.starts[index]

    def cut(self, start: int, end: int) -> tuple[Piece, ...]:
        """The pieces of positions `start` to `end`."""
        if start >= end:
            return ()
        first, last = bisect_right(self.starts, start) - 1, bisect_left(self.starts, end) - 1
        pieces = list(self.pieces[first : last + 1])
        pieces[-1] = Piece(pieces[-1].low, pieces[-1].low + end - self.starts[last])
        pieces[0] = Piece(pieces[0].low + start - self.starts[first], pieces[0].high)
        return tuple(pieces)

    def replaced(self, span: Span, piece: Piece | None) -> "PoolDocument":
        """This document with `piece` (nothing for None) in the place of `span`."""
        middle = () if piece is None else (piece,)
        pieces = (*self.cut(0, span.start), *middle, *self.cut(span.end, self.length))
        return PoolDocument.of(self.name, self.source, pieces)
