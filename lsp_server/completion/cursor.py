"""Where a completion is asked for, and in which text: the editor's, or one that is yet to come."""

from dataclasses import dataclass, replace
from typing import Self

from lsprotocol import types

from engine.host.protocol import LineSplice, Position
from lsp_server.completion.item import Selected
from lsp_server.completion.type_through import Remainder
from lsp_server.documents.document import Snapshot
from lsp_server.prompt.brackets import balance
from lsp_server.prompt.extent import Trigger


@dataclass(frozen=True, slots=True)
class Asked:
    """A request as the editor makes it; positions in the client's units."""

    uri: str
    position: types.Position
    trigger: Trigger = Trigger.AUTOMATIC
    selected: types.SelectedCompletionInfo | None = None


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a completion begins: a cursor in a text, which may be one that is yet to come."""

    snapshot: Snapshot
    position: Position

    def typed_since(self, snapshot: Snapshot, position: Position) -> str | None:
        """What was typed here since; None where the text changed in any other way."""
        old, new, row = self.snapshot.lines, snapshot.lines, self.position.line
        added = position.line - row
        if added < 0 or len(new) != len(old) + added or snapshot.uri != self.snapshot.uri:
            return None
        if new[:row] != old[:row] or new[position.line + 1 :] != old[row + 1 :]:
            return None
        written = "\n".join((*new[row : position.line], snapshot.prefix_of_line(position)))
        before = self.snapshot.prefix_of_line(self.position)
        if not written.startswith(before):
            return None
        typed = written[len(before) :]
        rest, old_rest = snapshot.rest_of_line(position), self.snapshot.rest_of_line(self.position)
        return typed if rest in (old_rest, balance(typed).closers + old_rest) else None


@dataclass(frozen=True, slots=True)
class Cursor:
    """A place in a text that may differ from the editor's: the menu's item may be accepted in it."""

    snapshot: Snapshot  # as the editor has it
    origin: Origin  # as it is completed
    trigger: Trigger
    selected: Selected | None = None

    @property
    def overlay(self) -> tuple[LineSplice, ...]:
        """What makes the one text of the other."""
        if self.selected is None:
            return ()
        row = self.origin.position.line
        return (LineSplice(row, row + 1, (self.origin.snapshot.line(row),)),)

    @classmethod
    def of(cls, asked: Asked, snapshot: Snapshot) -> Self:
        """The place that is asked for; the menu's item, if one is selected, counts as accepted."""
        position = snapshot.position(asked.position)
        selected = _selected(asked, snapshot, position)
        if selected is None:
            return cls(snapshot, Origin(snapshot, position), asked.trigger)
        row = position.line
        applied = selected.applied(snapshot.line(row))
        lines = (*snapshot.lines[:row], applied, *snapshot.lines[row + 1 :])
        cursor = Position(row, selected.start + len(selected.text))
        origin = Origin(replace(snapshot, lines=lines), cursor)
        return cls(snapshot, origin, asked.trigger, selected)


def _selected(asked: Asked, snapshot: Snapshot, position: Position) -> Selected | None:
    """The menu's item; one that does not end at the cursor is something else, as in Neovim."""
    if asked.selected is None or not asked.selected.text:
        return None
    start = snapshot.position(asked.selected.range.start)
    end = snapshot.position(asked.selected.range.end)
    if start.line != position.line or end.line != position.line:
        return None
    if not start.character <= position.character <= end.character:
        return None
    return Selected(start.character, end.character, asked.selected.text)


def accepted(origin: Origin, shown: Remainder) -> Origin:
    """The text with what is shown, and the cursor behind it."""
    snapshot, position = origin.snapshot, origin.position
    before = snapshot.prefix_of_line(position)
    rest = snapshot.rest_of_line(position)[shown.replaced_chars_after_cursor :]
    written = (before + shown.text).split("\n")
    cursor = Position(position.line + len(written) - 1, len(written[-1]))
    written[-1] += rest
    lines = (
        *snapshot.lines[: position.line],
        *written,
        *snapshot.lines[position.line + 1 :],
    )
    return Origin(replace(snapshot, lines=lines), cursor)
