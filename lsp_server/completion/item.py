"""A completion as ghost text or as a menu entry, in the client's units."""

import re

from lsprotocol import types

from engine.host.protocol import Position
from lsp_server.completion.suggestions import Suggestion
from lsp_server.documents.anchor import Anchor, SpanEdit
from lsp_server.documents.document import Snapshot

ACCEPT_COMMAND = "foregram.accept"


def inline_item(
    anchor: Anchor, rest: Suggestion, line_end: str = "\n"
) -> types.InlineCompletionItem:
    """Return the text left to type, after the menu's item; accepting runs `foregram.accept`."""
    document, cursor = anchor.document, anchor.position
    edit = anchor.selected or SpanEdit(cursor.line, cursor.character, cursor.character)
    end = edit.end + rest.replaced_chars_after_cursor
    return types.InlineCompletionItem(
        insert_text=(edit.text + rest.text).replace("\n", line_end),
        range=types.Range(
            document.client_position(Position(edit.line, edit.start)),
            document.client_position(Position(edit.line, end)),
        ),
        command=types.Command(
            "Accept completion",
            ACCEPT_COMMAND,
            arguments=[rest.completion_id, rest.end, rest.begun],
        ),
    )


def menu_entry(
    item: types.InlineCompletionItem, snapshot: Snapshot, cursor: types.Position
) -> types.CompletionItem:
    """Return the item from the start of the word at the cursor, by which clients filter."""
    assert item.range is not None  # noqa: S101 - every item of ours has one
    here = snapshot.position(cursor)
    line = snapshot.prefix_of_line(here)
    # Read backwards, as a search for `\w+\Z` retries each character of a long word.
    word = re.split(r"\W", line[::-1], maxsplit=1)[0]
    start = Position(here.line, len(line) - len(word))
    before = snapshot.prefix_of_line(snapshot.position(item.range.start))
    text = (before + str(item.insert_text))[start.character :]
    first_line = text.strip().split("\n", 1)[0].rstrip()
    return types.CompletionItem(
        label=first_line,
        kind=types.CompletionItemKind.Text,
        detail="foregram",
        documentation=text,
        sort_text="!",  # first, but not preselected: Enter should still insert a new line
        filter_text=first_line,  # the whole text would match nearly anything
        text_edit=types.TextEdit(
            types.Range(snapshot.client_position(start), item.range.end), text
        ),
        insert_text_mode=types.InsertTextMode.AsIs,  # the text is already indented
        command=item.command,
    )
