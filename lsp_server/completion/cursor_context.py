"""The context in which a completion is judged: the text around the cursor, and the scope."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from engine.host.protocol import Position
from engine.text.brackets import LONG_QUOTES, Balance, balance
from lsp_server.language_names import UNPAIRED, comment_signs
from lsp_server.prompt.place import Scope, comment_end

_WINDOW = 1_000  # lines on either side
LONGEST_SIDE = 1_000  # characters read of the cursor's line on either side
_MOST_CHARS = 200_000  # characters around the cursor up to which brackets are counted
MOST_HEAD = 20_000  # characters before the cursor that are searched for open brackets and strings


@dataclass(frozen=True, slots=True)
class CursorContext:
    """The relevant lines around a cursor."""

    above: tuple[str, ...]
    before: str  # the cursor's line up to it
    rest: str  # the cursor's line after it
    below: tuple[str, ...]
    scope: Scope = Scope.SEVERAL
    comment_signs: tuple[str, ...] = ()  # of line comments
    is_cut: bool = False  # whether the document has more lines above
    language_id: str = ""
    is_in_comment: bool = False

    @classmethod
    def of(
        cls,
        lines: Sequence[str],
        position: Position,
        *,
        scope: Scope = Scope.SEVERAL,
        language_id: str = "",
        is_in_comment: bool = False,
    ) -> Self:
        """Return the context of a position in `lines`."""
        row, line = position.line, lines[position.line]
        return cls(
            tuple(lines[max(row - _WINDOW, 0) : row]),
            line[: position.character],
            line[position.character :],
            tuple(lines[row + 1 : row + 1 + _WINDOW]),
            scope,
            comment_signs(language_id),
            row > _WINDOW,
            language_id,
            is_in_comment,
        )

    def is_free(self, text: str) -> bool:
        """Whether brackets and quotes of `text` may stay unpaired, in this language or comment."""
        stays = not any(end in text for end in ("\n", "*/", "-->"))
        return self.language_id in UNPAIRED or (self.is_in_comment and stays)

    @property
    def head(self) -> str:
        """All text before the cursor."""
        return "\n".join((*self.above, self.before))

    @property
    def text_ends(self) -> list[str]:
        """The ends of multi-line strings and comments that the cursor may be in."""
        head = self.head[-MOST_HEAD:]
        ends = [quote for quote in (*LONG_QUOTES, "`") if head.count(quote) % 2]
        return [*ends, *filter(None, [comment_end(head, self.language_id)])]

    def balance(self, text: str = "", replaced: int = 0) -> Balance | None:
        """Balance the whole text with `text` inserted; None if it is too long."""
        head, tail = self.head, "\n".join((self.rest[replaced:], *self.below))
        if len(head) + len(tail) > _MOST_CHARS:
            return None
        return balance(head + text + tail, self.comment_signs)
