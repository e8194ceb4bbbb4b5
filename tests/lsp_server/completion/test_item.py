"""A completion as an item of LSP: ranges, encodings, line ends, the menu's item."""

from engine.host.protocol import Position
from lsp_server.completion.item import inline_item
from lsp_server.completion.suggestions import Suggestion
from lsp_server.documents.anchor import Anchor, LineEdit
from lsp_server.documents.document import Snapshot


def item(lines: str, column: int, rest: Suggestion, selected: LineEdit | None = None, **options):
    """What is shown on the last line: its text, and the columns that it replaces."""
    text = tuple(lines.split("\n"))
    document = Snapshot("file:///a.py", "python", 1, 1, text, "\n")
    cursor = Position(len(text) - 1, column)
    anchor = Anchor(document, cursor, document, cursor.line, selected)
    made = inline_item(anchor, rest, **options)
    span = made.range
    assert span.start.line == span.end.line == cursor.line
    assert (made.command.command, made.command.arguments) == ("foregram.accept", ["id-1"])
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
    selected = LineEdit(0, 6, 9, "append")
    rest = Suggestion("(x)", 2, "id-1")
    assert item("items.app()", 9, rest, selected) == ("append(x)", 6, 11)
