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
    """An item as the server sent it; its command carries the completion's id, its end and begin."""

    insert_text: Any = ""
    command: _Command | None = None

    @property
    def completion_id(self) -> str | None:
        """The id of the item's completion."""
        first = self._argument(0)
        return first if isinstance(first, str) else None

    @property
    def end(self) -> int | None:
        """Where the item's text ends in its completion, if known."""
        second = self._argument(1)
        return second if isinstance(second, int) else None

    @property
    def begun(self) -> int:
        """Where the item's text begins in its completion; 0 if unknown."""
        third = self._argument(2)
        return third if isinstance(third, int) else 0

    def end_of(self, utf16_len: int) -> int:
        """Where the first so many UTF-16 units of the item's text end in its completion."""
        text, end = str(self.insert_text), self.end
        taken = to_code_points(text, utf16_len)
        return taken if end is None else end - len(text[taken:].replace("\r\n", "\n"))

    def _argument(self, place: int) -> object:
        arguments = self.command.arguments if self.command else ()
        return arguments[place] if place < len(arguments) else None


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
