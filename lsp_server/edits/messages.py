"""Messages about next edits, as Copilot's clients send them."""

import msgspec
from lsprotocol import types

from engine.request import MAX_DIAGNOSTICS, MAX_MESSAGE_CHARS, Diagnostic

ACCEPT = "github.copilot.didAcceptNextEditSuggestionItem"
REJECT = "github.copilot.didRejectNextEditSuggestionItem"
IGNORE = "github.copilot.didIgnoreNextEditSuggestionItem"


class _Found(msgspec.Struct, frozen=True):
    range: types.Range
    message: str


class InlineEditParams(msgspec.Struct, frozen=True, rename="camel"):
    """`textDocument/copilotInlineEdit`."""

    text_document: types.OptionalVersionedTextDocumentIdentifier
    position: types.Position
    diagnostics: tuple[_Found, ...] | None = None

    def diagnostics_from(self, row: int) -> tuple[Diagnostic, ...]:
        """Return the diagnostics, nearest to the row first."""
        found = [(one.range.start.line, one.message) for one in self.diagnostics or ()]
        found.sort(key=lambda one: abs(one[0] - row))
        return tuple(
            Diagnostic(line, message[:MAX_MESSAGE_CHARS])
            for line, message in found[:MAX_DIAGNOSTICS]
        )
