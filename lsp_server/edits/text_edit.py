"""A model's change of whole lines, as the smallest one, and in the client's units."""

from collections.abc import Sequence

from lsprotocol import types
from msgspec.structs import replace

from engine.common_start import common_ends
from engine.host.protocol import Position
from engine.request import EditOutcome
from lsp_server.documents.document import Snapshot
from lsp_server.documents.line_buffer import LineBuffer


def trimmed(outcome: EditOutcome, lines: Sequence[str]) -> EditOutcome | None:
    """Return the outcome without its unchanged first and last lines.

    Returns None if it changes nothing of `lines`, or not only them.
    """
    if outcome.refusal or not 0 <= outcome.first <= outcome.end <= len(lines):
        return None
    old = tuple(lines[outcome.first : outcome.end])
    # A carriage return would end a line in the client.
    is_emptied = not outcome.lines and len(old) == len(lines)
    new = LineBuffer("\n".join(outcome.lines)).lines if outcome.lines or is_emptied else ()
    if old == new or not _is_whole(old):
        return None
    start, tail = common_ends(old, new)
    first, end = outcome.first + start, outcome.end - tail
    return replace(outcome, first=first, end=end, lines=new[start : len(new) - tail])


def text_edit(
    outcome: EditOutcome, document: Snapshot, line_end: str = "\n"
) -> types.TextEdit | None:
    """Return the smallest change of whole lines; None if it changes nothing, or not only them."""
    change = trimmed(outcome, document.lines)
    if change is None:
        return None
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
