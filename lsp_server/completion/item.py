"""A completion as an editor wants it: one item of LSP, in the client's units and line ends."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Self

from lsprotocol import types

from engine.host.protocol import Position
from lsp_server.completion.processed import Processed

ACCEPT_COMMAND = "foregram.accept"

ToClient = Callable[[str, int], int]
"""Client units of the first so many code points of a line."""


@dataclass(frozen=True, slots=True)
class Insertion:
    """Text, with LF line ends, in place of code points `start` to `end` of a line."""

    line: int
    start: int
    end: int
    text: str

    @classmethod
    def at_cursor(cls, position: Position, processed: Processed) -> Self:
        """What post-processing has made, as the cursor's continuation."""
        column = position.character
        end = column + processed.replaced_chars_after_cursor
        return cls(position.line, column, end, processed.text)

    def from_line_start(self, line_text: str) -> Self:
        """The same with the line before it: flickers less in VS Code on accept by word."""
        return replace(self, start=0, text=line_text[: self.start] + self.text)


@dataclass(frozen=True, slots=True)
class Selected:
    """The item selected in the editor's menu: code points on the cursor's line, and its text."""

    start: int
    end: int
    text: str

    def applied(self, line_text: str) -> str:
        """The line as it would be with the item accepted: what a host should continue."""
        return line_text[: self.start] + self.text + line_text[self.end :]

    def followed_by(self, line: int, continuation: Processed) -> Insertion:
        """The menu's item and what comes after it, made where it had been accepted."""
        end = self.end + continuation.replaced_chars_after_cursor
        return Insertion(line, self.start, end, self.text + continuation.text)


def inline_item(
    insertion: Insertion,
    *,
    line_text: str,
    to_client: ToClient,
    completion_id: str,
    line_end: str = "\n",
    accept_command: str = ACCEPT_COMMAND,
) -> types.InlineCompletionItem:
    """Build the item; accepting it runs `accept_command`, if any, with the completion's id."""
    start = to_client(line_text, insertion.start)
    end = to_client(line_text, min(insertion.end, len(line_text)))
    return types.InlineCompletionItem(
        insert_text=insertion.text.replace("\n", line_end),
        range=types.Range(
            types.Position(insertion.line, start), types.Position(insertion.line, end)
        ),
        command=_told(accept_command, completion_id) if accept_command else None,
    )


def _told(accept_command: str, completion_id: str) -> types.Command:
    return types.Command("Accept completion", accept_command, arguments=[completion_id])
