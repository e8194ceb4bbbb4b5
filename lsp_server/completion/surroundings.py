"""What a completion is judged against: the text around the cursor and how much was asked for."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from engine.host.protocol import Position
from lsp_server.prompt.extent import Extent
from lsp_server.prompt.indentation import indent_unit
from lsp_server.prompt.line_scan import UNPAIRED, comment_marks

_WINDOW = 1_000  # lines on either side
LONGEST_SIDE = 2_000  # characters of the cursor's line on either side that are read
MOST_CHARS = 200_000  # around the cursor that brackets are counted in
_UNIT_LINES = 100  # on either side that tell the unit of indentation


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The lines around a cursor, near enough to matter."""

    above: tuple[str, ...]
    before: str  # the cursor's line up to it
    rest: str  # and behind it
    below: tuple[str, ...]
    extent: Extent = Extent.SEVERAL
    unit: str | None = None  # of indentation
    marks: tuple[str, ...] = ()  # of line comments
    is_cut: bool = False  # there is more above
    language_id: str = ""

    @classmethod
    def of(
        cls,
        lines: Sequence[str],
        position: Position,
        *,
        extent: Extent = Extent.SEVERAL,
        language_id: str = "",
        unit: str | None = None,
    ) -> Self:
        """Read them; the document tells the unit of indentation if the editor does not."""
        row, line = position.line, lines[position.line]
        near = lines[max(row - _UNIT_LINES, 0) : row + _UNIT_LINES]
        return cls(
            tuple(lines[max(row - _WINDOW, 0) : row]),
            line[: position.character],
            line[position.character :],
            tuple(lines[row + 1 : row + 1 + _WINDOW]),
            extent,
            unit or indent_unit(near),
            comment_marks(language_id),
            row > _WINDOW,
            language_id,
        )

    @property
    def is_free(self) -> bool:
        """Brackets and quotes stand here as they like."""
        return self.language_id in UNPAIRED

    @property
    def head(self) -> str:
        """All text before the cursor."""
        return "\n".join((*self.above, self.before))
