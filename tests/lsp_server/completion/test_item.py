"""A completion as an item of LSP: ranges, encodings, line ends, the menu's item."""

import time

import pytest
from lsprotocol import types

from engine.host.protocol import Position
from lsp_server.completion.item import inline_item, menu_entry
from lsp_server.completion.suggestions import Suggestion
from lsp_server.documents.anchor import Anchor, SpanEdit
from lsp_server.documents.document import Snapshot


def item(lines: str, column: int, rest: Suggestion, selected: SpanEdit | None = None, **options):
    """What is shown on the last line: its text, and the columns that it replaces."""
    text = tuple(lines.split("\n"))
    document = Snapshot("file:///a.py", "python", 1, 1, text, "\n")
    cursor = Position(len(text) - 1, column)
    anchor = Anchor(document, cursor, document, cursor.line, selected)
    made = inline_item(anchor, rest, **options)
    span = made.range
    assert span.start.line == span.end.line == cursor.line
    assert (made.command.command, made.command.arguments) == (
        "foregram.accept",
        ["id-1", rest.end, rest.begun],
    )
    assert made.filter_text is None
    return made.insert_text, span.start.character, span.end.character


def test_the_range_is_in_the_clients_units():
    assert item("\n\né🙂()", 3, Suggestion("a)", 1, "id-1")) == ("a)", 4, 5)


def test_the_item_begins_at_the_cursor_and_covers_what_it_repeats():
    assert item("f():", 2, Suggestion("a)", 1, "id-1")) == ("a)", 2, 3)


def test_line_ends_are_those_asked_for():
    rest = Suggestion("a\nb", 0, "id-1")
    assert item("", 0, rest)[0] == "a\nb"
    assert item("", 0, rest, line_end="\r\n")[0] == "a\r\nb"


def test_a_completion_made_after_the_menus_item_contains_it():
    selected = SpanEdit(0, 6, 9, "append")
    rest = Suggestion("(x)", 2, "id-1")
    assert item("items.app()", 9, rest, selected) == ("append(x)", 6, 11)


def menu(line: str, rest: str) -> types.CompletionItem:
    """The menu's entry at the end of a line."""
    document = Snapshot("file:///a.py", "python", 1, 1, (line,), "\n")
    cursor = Position(0, len(line))
    made = inline_item(Anchor(document, cursor, document, 0), Suggestion(rest, 0, "id-1"))
    return menu_entry(made, document, types.Position(0, len(line)))


@pytest.mark.parametrize(
    ("line", "shown", "start"),
    [("x = self.ap", "append(1)", 9), ("f(é_1", "é_1pend(1)", 2), ("f(", "pend(1)", 2)],
)
def test_the_menus_entry_begins_with_the_word_before_the_cursor(line, shown, start):
    entry = menu(line, "pend(1)")
    assert (entry.label, entry.text_edit.range.start.character) == (shown, start)


def test_a_long_word_elsewhere_in_the_line_costs_the_menu_nothing():
    began = time.process_time()
    assert menu(f"key = '{'a' * 50_000}' + x", "y").label == "xy"
    assert time.process_time() - began < 1  # a minute where each character is tried
