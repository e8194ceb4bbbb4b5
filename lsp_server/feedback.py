"""Messages about completions that LSP lacks, as Copilot's clients send them."""

from typing import Any, TypeVar

import msgspec
from lsprotocol import types

from engine.errors import InputError
from lsp_server.documents.line_buffer import to_code_points

_Read = TypeVar("_Read", bound=msgspec.Struct)


class _Command(msgspec.Struct, frozen=True):
    arguments: tuple[Any, ...] = ()


class Item(msgspec.Struct, frozen=True, rename="camel"):
    """An item as the server sent it; its command carries the completion's id, and where it ends."""

    insert_text: Any = ""
    command: _Command | None = None

    @property
    def completion_id(self) -> str | None:
        """The id of the item's completion."""
        first = self.command.arguments[0] if self.command and self.command.arguments else None
        return first if isinstance(first, str) else None

    def end_of(self, utf16_len: int) -> int:
        """Where the first so many UTF-16 units of the item's text end in its completion."""
        text, arguments = str(self.insert_text), self.command.arguments if self.command else ()
        taken = to_code_points(text, utf16_len)
        if len(arguments) < 2 or not isinstance(arguments[1], int):
            return taken
        return arguments[1] - len(text[taken:].replace("\r\n", "\n"))


class ItemParams(msgspec.Struct, frozen=True, rename="camel"):
    """What was shown or partially accepted: a completion, or for `didShowInlineEdit` an edit."""

    item: Item
    accepted_length: int = 0  # UTF-16 units from the text's start, if accepted in part


class PlaceParams(msgspec.Struct, frozen=True, rename="camel"):
    """`textDocument/didFocus`, `foregram/cursor` and the argument of `foregram.why`."""

    text_document: types.TextDocumentIdentifier | None = None
    position: types.Position | None = None


def read(params: object, kind: type[_Read]) -> _Read:
    """Read a message's params. Raises InputError, which names the fault."""
    try:
        return msgspec.convert(params, kind)
    except msgspec.ValidationError as error:
        raise InputError(f"{kind.__name__}: {error}") from error
