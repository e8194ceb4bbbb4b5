"""A model's change of whole lines, as the smallest one, and in the client's units."""

from collections.abc import Sequence

from lsprotocol import types
from msgspec.structs import replace

from engine.common_start import common_ends
from engine.edits.edit_prompt import Refusal
from engine.host.protocol import Position
from engine.request import EditOutcome, EditTask
from lsp_server.documents.document import Snapshot
from lsp_server.documents.line_buffer import LineBuffer
from lsp_server.edits.refusals import OUTSIDE, EditRefusedError
from lsp_server.reasons import Reason


def change_of(edit: EditOutcome | None, task: EditTask, lines: Sequence[str]) -> EditOutcome:
    """Return an answer's change of `lines` without the first and last ones that stay.

    Raises EditRefusedError if it changes nothing, or other lines than those of an instruction.
    """
    if edit is None:
        raise EditRefusedError(Reason.HOST_FAILED)
    if edit.refusal:
        raise EditRefusedError(edit.refusal)
    first, end = (task.first, task.end) if task.instruction else (0, len(lines))
    if not first <= edit.first <= edit.end <= end <= len(lines):
        raise EditRefusedError(OUTSIDE)
    old = tuple(lines[edit.first : edit.end])
    # A carriage return would end a line in the client.
    is_emptied = not edit.lines and len(old) == len(lines)
    new = LineBuffer("\n".join(edit.lines)).lines if edit.lines or is_emptied else ()
    if old == new or not _is_whole(old):
        raise EditRefusedError(Refusal.NO_CHANGE)
    start, tail = common_ends(old, new)
    lines = new[start : len(new) - tail]
    return replace(edit, first=edit.first + start, end=edit.end - tail, lines=lines)


def text_edit(change: EditOutcome, document: Snapshot, line_end: str = "\n") -> types.TextEdit:
    """Return a change of whole lines in the client's units."""
    start, end = Position(change.first, 0), Position(change.end, 0)
    text = "".join(line + line_end for line in change.lines)
    if change.first < change.end and change.lines:  # the last line's end stays
        end, text = _end_of(document, change.end - 1), text.removesuffix(line_end)
    elif change.end == len(document.lines):  # the last line has no end
        end = _end_of(document, change.end - 1)
        if change.first > 0:
            start = _end_of(document, change.first - 1)
            text = line_end + text.removesuffix(line_end) if text else ""
    where = types.Range(document.client_position(start), document.client_position(end))
    return types.TextEdit(where, text)


def _end_of(document: Snapshot, line: int) -> Position:
    return Position(line, len(document.lines[line]))


def _is_whole(lines: Sequence[str]) -> bool:
    """Whether the host has these very lines: it gets a question mark for half a character."""
    text = "\n".join(lines)
    return text.isascii() or text.encode("utf-8", "replace").decode() == text
