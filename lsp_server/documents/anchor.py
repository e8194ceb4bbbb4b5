"""Where a completion begins: a position in the editor's text, or in an expected one."""

from dataclasses import dataclass, field, replace
from typing import NamedTuple, Self

from lsprotocol import types

from engine.common_start import common_ends
from engine.host.protocol import LineSplice, Position
from lsp_server.documents.cells_around import ALONE, CellsAround
from lsp_server.documents.document import Snapshot
from lsp_server.reasons import Reason


class SpanEdit(NamedTuple):
    """Text, with LF line ends, in place of code points `start` to `end` of a line."""

    line: int
    start: int
    end: int
    text: str = ""


@dataclass(frozen=True, slots=True)
class Anchor:
    """A position in `snapshot`: the editor's `document`, but for an expected edit at line `row`."""

    snapshot: Snapshot
    position: Position
    document: Snapshot = field(compare=False)
    row: int = field(compare=False)
    selected: SpanEdit | None = field(default=None, compare=False)  # menu item taken as accepted
    is_invoked: bool = field(default=False, compare=False)  # whether the user asked explicitly
    cells: CellsAround = ALONE  # the other cells of the document's notebook
    # An explicit request where text is hard to predict, as in prose, so only one confident line.
    is_guess: bool = field(default=False, compare=False)

    @classmethod
    def of(cls, document: Snapshot, position: Position, cells: CellsAround = ALONE) -> Self:
        """Return a position in the editor's own text."""
        return cls(document, position, document, position.line, cells=cells)

    @classmethod
    def at(
        cls,
        params: types.InlineCompletionParams,
        document: Snapshot,
        cells: CellsAround = ALONE,
    ) -> Self:
        """Return the requested position, with the menu's selected item, if any, in the text."""
        position, context = document.position(params.position), params.context
        is_invoked = context.trigger_kind is types.InlineCompletionTriggerKind.Invoked
        selected = _selected(context.selected_completion_info, document, position)
        edited = (document, position) if selected is None else _edited(document, selected)
        return cls(*edited, document, position.line, selected, is_invoked, cells)

    def accepting(self, text: str, replaced_chars_after_cursor: int) -> "Anchor":
        """Return the position after a completion, in the text with it inserted."""
        start = self.position.character
        end = start + replaced_chars_after_cursor
        after = _edited(self.snapshot, SpanEdit(self.position.line, start, end, text))
        return Anchor(*after, self.document, self.row, cells=self.cells)

    @classmethod
    def after(cls, document: Snapshot, first: int, end: int, lines: tuple[str, ...]) -> Self:
        """Return the end of the lines that are expected in place of lines `first` to `end`."""
        text = (*document.lines[:first], *lines, *document.lines[end:]) or ("",)
        row = min(max(first, first + len(lines) - 1), len(text) - 1)
        return cls(replace(document, lines=text), Position(row, len(text[row])), document, row)

    @property
    def is_expected(self) -> bool:
        """Whether the text is not yet the editor's."""
        return self.snapshot is not self.document

    def fits(self, document: Snapshot | Reason) -> bool:
        """Whether the document's text has become the expected one."""
        if isinstance(document, Reason) or document.uri != self.document.uri:
            return False
        then = self.snapshot
        return document.opening == then.opening and document.lines == then.lines

    @property
    def overlay(self) -> tuple[LineSplice, ...]:
        """The splices that turn the document into the snapshot."""
        if not self.is_expected:
            return ()
        old, new = self.document.lines, self.snapshot.lines
        start, tail = common_ends(old, new)
        return (LineSplice(start, len(old) - tail, new[start : len(new) - tail]),)


def _selected(
    info: types.SelectedCompletionInfo | None, document: Snapshot, position: Position
) -> SpanEdit | None:
    """Return the menu's item; None if its range is not at the cursor, as in Neovim."""
    if info is None or not info.text:
        return None
    start, end = document.position(info.range.start), document.position(info.range.end)
    if start.line != position.line or end.line != position.line:
        return None
    if not start.character <= position.character <= end.character:
        return None
    return SpanEdit(position.line, start.character, end.character, info.text)


def _edited(snapshot: Snapshot, edit: SpanEdit) -> tuple[Snapshot, Position]:
    row, line = edit.line, snapshot.line(edit.line)
    written = line[: edit.start] + edit.text
    *above, last = written.split("\n")
    new = (written + line[edit.end :]).split("\n")
    lines = (*snapshot.lines[:row], *new, *snapshot.lines[row + 1 :])
    return replace(snapshot, lines=lines), Position(row + len(above), len(last))
