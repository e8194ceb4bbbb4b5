"""An open document, and the immutable snapshot that handlers work on."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from lsprotocol import types

from engine.host.protocol import Position
from lsp_server.documents.line_buffer import (
    LineBuffer,
    LineEnd,
    from_code_points,
    to_code_points,
)
from lsp_server.language_names import language_of
from lsp_server.reasons import Reason

ContentChanges = Sequence[types.TextDocumentContentChangeEvent]
WholeDocument = types.TextDocumentContentChangeWholeDocument

_LONGEST_LINE = 100_000  # characters; longer lines are not written by hand


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A document at one version. Positions count code points, as the host does."""

    uri: str
    language_id: str
    version: int
    opening: int  # versions of different openings of one URI do not compare
    lines: tuple[str, ...]
    line_end: LineEnd  # for answers to clients that want the document's own
    named_language: str = ""  # the language that the editor's identifier alone names

    def line(self, number: int) -> str:
        """Line `number` from 0 without its end; "" outside the text."""
        return self.lines[number] if 0 <= number < len(self.lines) else ""

    def is_long(self, number: int) -> bool:
        """Whether a line is longer than any that is written by hand."""
        return len(self.line(number)) > _LONGEST_LINE

    def position(self, client: types.Position) -> Position:
        """Convert a client's position, clamped to the text."""
        if client.line >= len(self.lines):
            return Position(len(self.lines) - 1, len(self.lines[-1]))
        line = self.lines[client.line]
        return Position(client.line, to_code_points(line, client.character))

    def client_position(self, position: Position) -> types.Position:
        """Convert a position to the client's units."""
        character = from_code_points(self.line(position.line), position.character)
        return types.Position(position.line, character)

    def prefix_of_line(self, position: Position) -> str:
        """The text before `position` in its line."""
        return self.line(position.line)[: position.character]

    def rest_of_line(self, position: Position) -> str:
        """The text after `position` in its line."""
        return self.line(position.line)[position.character :]


class Document:
    """A text that follows the editor's, or why there is none."""

    def __init__(
        self, item: types.TextDocumentItem, opening: int, refusal: Reason | None = None
    ) -> None:
        self.refusal = refusal
        self.buffer = LineBuffer(item.text if refusal is None else "")
        self.snapshot = Snapshot(
            item.uri,
            language_of(item.language_id, item.uri),
            item.version,
            opening,
            self.buffer.lines,
            self.buffer.line_end,
            language_of(item.language_id),
        )

    def change(self, version: int, changes: ContentChanges) -> None:
        """Apply `changes` in order. Our version grows even if `version` does not."""
        for change in changes:
            where = None if isinstance(change, WholeDocument) else change.range
            self.buffer.apply(where, change.text)
        self.refusal = None
        self.snapshot = replace(
            self.snapshot,
            version=max(version, self.snapshot.version + 1),
            lines=self.buffer.lines,
            line_end=self.buffer.line_end,
        )

    def refuse(self, reason: Reason) -> None:
        """Drop the text, and keep the reason."""
        self.refusal, self.buffer = reason, LineBuffer("")
        self.snapshot = replace(self.snapshot, lines=self.buffer.lines)
