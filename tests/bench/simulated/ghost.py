"""Ghost text as it stands behind a cursor, and when each part of it appeared."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True, slots=True)
class Piece:
    """Text that appeared at one moment, in seconds."""

    text: str
    since: float


@dataclass(frozen=True, slots=True)
class Ghost:
    """Text in the pieces in which it appeared, each later than the one before it."""

    pieces: tuple[Piece, ...]

    def __post_init__(self) -> None:
        assert all(piece.text for piece in self.pieces)

    @classmethod
    def of(cls, text: str, now: float) -> Self:
        """Text that appears at once."""
        return cls((Piece(text, now),) if text else ())

    @property
    def text(self) -> str:
        """All of it."""
        return "".join(piece.text for piece in self.pieces)

    def standing_since(self, moment: float) -> str:
        """What has been there since `moment` or longer."""
        return "".join(piece.text for piece in self.pieces if piece.since <= moment)

    def typed_along(self, typed: str) -> "Ghost":
        """What is left of it behind `typed`; nothing where it does not begin so."""
        if not self.text.startswith(typed):
            return NOTHING
        return self._part(len(typed), len(self.text))

    def replaced(self, text: str, now: float) -> "Ghost":
        """What an answer makes of it: a longer or shorter text keeps what stands there already."""
        kept = min(len(text), len(self.text))
        if text[:kept] != self.text[:kept]:
            return Ghost.of(text, now)
        return Ghost((*self._part(0, kept).pieces, *Ghost.of(text[kept:], now).pieces))

    def _part(self, start: int, end: int) -> "Ghost":
        return Ghost(tuple(_cut(self.pieces, start, end)))


def _cut(pieces: Iterable[Piece], start: int, end: int) -> Iterable[Piece]:
    """The pieces' characters from `start` to `end` (excluded)."""
    offset = 0
    for piece in pieces:
        text = piece.text[max(0, start - offset) : max(0, end - offset)]
        if text:
            yield Piece(text, piece.since)
        offset += len(piece.text)


NOTHING = Ghost(())
