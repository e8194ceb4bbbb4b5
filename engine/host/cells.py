"""The cells of a notebook around the one completed: with it they are one text, as they are read."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import chain

from engine.errors import InputError
from engine.host.held_buffer import HeldBuffer
from engine.host.protocol import MAX_CELL_CHARS, Cell

_GAP = "\n\n"  # between cells
_HEADING = re.compile("^#{1,6} +")  # a comment that begins so would be an odd one


@dataclass(frozen=True, slots=True)
class CellText:
    """A cell as it stands in the text of its notebook."""

    uri: str
    text: str

    @classmethod
    def of(cls, held: HeldBuffer, sign: str) -> "CellText":
        """Prose has the sign of a comment before each of its lines, and not its headings' own."""
        if not sign:
            return cls(held.uri, held.as_buffer.text)
        lines = (_HEADING.sub("", line) for line in held.lines)
        return cls(held.uri, "\n".join(f"{sign} {line}".rstrip() for line in lines))


@dataclass(frozen=True, slots=True)
class CellTexts:
    """The cells above and below, in their order."""

    above: tuple[CellText, ...] = ()
    below: tuple[CellText, ...] = ()

    @classmethod
    def of(
        cls, above: Iterable[Cell], below: Iterable[Cell], get: Callable[[str], HeldBuffer]
    ) -> "CellTexts":
        """The texts of buffers, which `get` gets by their URIs, or raises.

        Raises InputError where they are too long together, before it makes them.
        """
        held = [[(get(one.uri), one.sign) for one in side] for side in (above, below)]
        num_chars = 0  # at most, as each line may get the sign of a comment
        for one, sign in chain(*held):
            num_chars += len(one.as_buffer.text) + len(one.lines) * (len(sign) + 1)
        if num_chars > MAX_CELL_CHARS:
            raise InputError(
                f"the cells around have {num_chars:,} characters, above {MAX_CELL_CHARS:,}"
            )
        return cls(*(tuple(CellText.of(one, sign) for one, sign in side) for side in held))

    def around(self, prefix: str, suffix: str, is_open: Callable[[str], bool]) -> tuple[str, str]:
        """The text before and behind the cursor, with the cells that are still open."""
        above = "".join(f"{one.text}{_GAP}" for one in self.above if is_open(one.uri))
        below = "".join(f"{_GAP}{one.text}" for one in self.below if is_open(one.uri))
        return above + prefix, suffix + below
