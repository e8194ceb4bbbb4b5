"""A completion as an editor wants it: ghost text, or an entry of the menu, in the client's units."""

from itertools import takewhile

from lsprotocol import types

from engine.host.protocol import Position
from lsp_server.documents.anchor import LineEdit
from lsp_server.documents.document import Snapshot

ACCEPT_COMMAND = "foregram.accept"


def inline_item(
    edit: LineEdit, document: Snapshot, completion_id: str, line_end: str = "\n"
) -> types.InlineCompletionItem:
    """Build the item; accepting it runs `foregram.accept` with the completion's id."""
    start = document.client_position(Position(edit.line, edit.start))
    end = document.client_position(Position(edit.line, edit.end))
    return types.InlineCompletionItem(
        insert_text=edit.text.replace("\n", line_end),
        range=types.Range(start, end),
        command=types.Command("Accept completion", ACCEPT_COMMAND, arguments=[completion_id]),
    )


def menu_entry(
    item: types.InlineCompletionItem, snapshot: Snapshot, cursor: types.Position
) -> types.CompletionItem:
    """The item from the start of the word before the cursor: clients filter by that word."""
    assert item.range is not None  # noqa: S101 - every item of ours has one
    start = _word_start(snapshot, snapshot.position(cursor))
    before = snapshot.prefix_of_line(snapshot.position(item.range.start))
    text = (before + str(item.insert_text))[start.character :]
    first_line = text.strip().split("\n", 1)[0].rstrip()
    return types.CompletionItem(
        label=first_line,
        kind=types.CompletionItemKind.Text,
        detail="foregram",
        documentation=text,
        sort_text="!",  # first; not preselected, since Enter should still mean a new line
        filter_text=first_line,  # the whole text would match nearly anything
        text_edit=types.TextEdit(
            types.Range(snapshot.client_position(start), item.range.end), text
        ),
        insert_text_mode=types.InsertTextMode.AsIs,  # it is indented already
        command=item.command,
    )


def _word_start(snapshot: Snapshot, position: Position) -> Position:
    before = snapshot.prefix_of_line(position)
    word = takewhile(lambda character: character.isalnum() or character == "_", reversed(before))
    return Position(position.line, position.character - len(list(word)))
