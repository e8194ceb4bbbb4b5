"""Where a completion begins: a position in the editor's text, or in one that is yet to come."""

from dataclasses import dataclass, field, replace
from typing import NamedTuple, Self

from lsprotocol import types

from engine.host.protocol import LineSplice, Position
from lsp_server.documents.cells_around import ALONE, CellsAround
from lsp_server.documents.document import Snapshot


class LineEdit(NamedTuple):
    """Text, with LF line ends, in place of code points `start` to `end` of a line."""

    line: int
    start: int
    end: int
    text: str = ""


@dataclass(frozen=True, slots=True)
class Anchor:
    """A position in `snapshot`, which is the editor's `document` with another line `row`.

    That line may be several where a completion is taken as accepted. `selected` is the item of the
    editor's menu that is taken as accepted.
    """

    snapshot: Snapshot
    position: Position
    document: Snapshot = field(compare=False)
    row: int = field(compare=False)
    selected: LineEdit | None = field(default=None, compare=False)
    is_invoked: bool = field(default=False, compare=False)  # the user asked, not only typed
    cells: CellsAround = ALONE  # of the notebook that the document is a cell of
    # Asked for where little tells what comes, as in prose: a line that the model is sure of.
    is_guess: bool = field(default=False, compare=False)

    @classmethod
    def of(cls, document: Snapshot, position: Position, cells: CellsAround = ALONE) -> Self:
        """A position in the editor's own text."""
        return cls(document, position, document, position.line, cells=cells)

    @classmethod
    def at(
        cls,
        params: types.InlineCompletionParams,
        document: Snapshot,
        cells: CellsAround = ALONE,
    ) -> Self:
        """The position that is asked for; the menu's item, if one is selected, is in the text."""
        position, context = document.position(params.position), params.context
        is_invoked = context.trigger_kind is types.InlineCompletionTriggerKind.Invoked
        selected = _selected(context.selected_completion_info, document, position)
        edited = (document, position) if selected is None else _edited(document, selected)
        return cls(*edited, document, position.line, selected, is_invoked, cells)

    def accepting(self, text: str, replaced_chars_after_cursor: int) -> "Anchor":
        """The text with a completion of this place, and the position behind it."""
        start = self.position.character
        end = start + replaced_chars_after_cursor
        after = _edited(self.snapshot, LineEdit(self.position.line, start, end, text))
        return Anchor(*after, self.document, self.row, cells=self.cells)

    @property
    def overlay(self) -> tuple[LineSplice, ...]:
        """What makes the snapshot of the document."""
        if self.snapshot is self.document:
            return ()
        num_added = len(self.snapshot.lines) - len(self.document.lines)
        lines = self.snapshot.lines[self.row : self.row + 1 + num_added]
        return (LineSplice(self.row, self.row + 1, lines),)


def _selected(
    info: types.SelectedCompletionInfo | None, document: Snapshot, position: Position
) -> LineEdit | None:
    """The menu's item; one that does not end at the cursor is something else, as in Neovim."""
    if info is None or not info.text:
        return None
    start, end = document.position(info.range.start), document.position(info.range.end)
    if start.line != position.line or end.line != position.line:
        return None
    if not start.character <= position.character <= end.character:
        return None
    return LineEdit(position.line, start.character, end.character, info.text)


def _edited(snapshot: Snapshot, edit: LineEdit) -> tuple[Snapshot, Position]:
    """The text with `edit`, and the position behind what that wrote."""
    row, line = edit.line, snapshot.line(edit.line)
    written = line[: edit.start] + edit.text
    *above, last = written.split("\n")
    new = (written + line[edit.end :]).split("\n")
    lines = (*snapshot.lines[:row], *new, *snapshot.lines[row + 1 :])
    return replace(snapshot, lines=lines), Position(row + len(above), len(last))
