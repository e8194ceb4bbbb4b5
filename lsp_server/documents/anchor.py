"""Where a completion begins: a position in the editor's text, or in one that is yet to come."""

from dataclasses import dataclass, field, replace
from typing import Self

from lsprotocol import types

from engine.host.protocol import LineSplice, Position
from engine.text.brackets import balance
from lsp_server.documents.cells_around import ALONE, CellsAround
from lsp_server.documents.document import Snapshot


@dataclass(frozen=True, slots=True)
class LineEdit:
    """Text, with LF line ends, in place of code points `start` to `end` of a line."""

    line: int
    start: int
    end: int
    text: str

    @classmethod
    def at(cls, position: Position, text: str = "", replaced_chars_after_cursor: int = 0) -> Self:
        """Text at a cursor, which replaces characters behind it."""
        start = position.character
        return cls(position.line, start, start + replaced_chars_after_cursor, text)

    def followed_by(self, text: str, replaced_chars_after_cursor: int) -> Self:
        """The same with text that was made where this one had been applied."""
        end = self.end + replaced_chars_after_cursor
        return replace(self, end=end, text=self.text + text)

    def applied(self, line_text: str) -> str:
        """The line as it is afterwards."""
        return line_text[: self.start] + self.text + line_text[self.end :]


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
        edit = LineEdit.at(self.position, text, replaced_chars_after_cursor)
        after = _edited(self.snapshot, edit)
        return Anchor(*after, self.document, self.row, cells=self.cells)

    @property
    def overlay(self) -> tuple[LineSplice, ...]:
        """What makes the snapshot of the document."""
        if self.snapshot is self.document:
            return ()
        num_added = len(self.snapshot.lines) - len(self.document.lines)
        lines = self.snapshot.lines[self.row : self.row + 1 + num_added]
        return (LineSplice(self.row, self.row + 1, lines),)

    def typed_until(self, later: "Anchor") -> str | None:
        """What was typed here before `later`; None where the text changed in any other way."""
        old, new, row = self.snapshot.lines, later.snapshot.lines, self.position.line
        below = later.position.line + 1
        if later.cells != self.cells:
            return None
        added = later.position.line - row
        if added < 0 or len(new) != len(old) + added or later.snapshot.uri != self.snapshot.uri:
            return None
        if new[:row] != old[:row] or new[below:] != old[row + 1 :]:
            return None
        typed = typed_since(new, row, self.snapshot.prefix_of_line(self.position), later.position)
        if typed is None:
            return None
        old_rest = self.snapshot.rest_of_line(self.position)
        rest = later.snapshot.rest_of_line(later.position)
        return typed if rest in (old_rest, balance(typed).closers + old_rest) else None


def typed_since(lines: tuple[str, ...], row: int, before: str, position: Position) -> str | None:
    """What was typed behind `before` in the line `row`, up to `position`; None if that has changed."""
    written = "\n".join((*lines[row : position.line], lines[position.line][: position.character]))
    return written[len(before) :] if written.startswith(before) else None


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
    *above, last = (line[: edit.start] + edit.text).split("\n")
    lines = (*snapshot.lines[:row], *edit.applied(line).split("\n"), *snapshot.lines[row + 1 :])
    return replace(snapshot, lines=lines), Position(row + len(above), len(last))
