"""Messages about completions that LSP lacks, as Copilot's clients send them."""

from typing import Any, TypeVar

import msgspec
from lsprotocol import types

from engine.errors import InputError


class _Message(msgspec.Struct, frozen=True, rename="camel"):
    """A part of a message; fields that we do not use are ignored."""


class _Command(_Message, frozen=True):
    arguments: tuple[Any, ...] = ()


class Item(_Message, frozen=True):
    """An item as the server sent it; its command carries the completion's id."""

    insert_text: Any = ""
    command: _Command | None = None

    @property
    def completion_id(self) -> str | None:
        """The completion that it belongs to."""
        first = self.command.arguments[0] if self.command and self.command.arguments else None
        return first if isinstance(first, str) else None


class ItemParams(_Message, frozen=True):
    """`textDocument/didShowCompletion` and `textDocument/didPartiallyAcceptCompletion`.

    The second counts UTF-16 units from the text's start.
    """

    item: Item
    accepted_length: int = 0


class PlaceParams(_Message, frozen=True):
    """`textDocument/didFocus`, `foregram/cursor` and the argument of `foregram.why`."""

    text_document: types.TextDocumentIdentifier | None = None
    position: types.Position | None = None


_Read = TypeVar("_Read", bound=_Message)


def read(params: object, kind: type[_Read]) -> _Read:
    """Read a message's params. Raises InputError, which names what is wrong."""
    try:
        return msgspec.convert(params, kind)
    except msgspec.ValidationError as error:
        raise InputError(f"{kind.__name__}: {error}") from error
