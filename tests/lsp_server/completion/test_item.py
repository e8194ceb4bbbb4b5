"""A completion as an item of LSP: ranges, encodings, line ends, the menu's item."""

from engine.host.protocol import Position
from lsp_server.completion.item import inline_item
from lsp_server.documents.anchor import LineEdit
from lsp_server.documents.document import Snapshot


def document(edit: LineEdit, line: str) -> Snapshot:
    """A document that holds `line` where `edit` is."""
    lines = (*[""] * edit.line, line)
    return Snapshot("file:///a.py", "python", 1, 1, lines, "\n")


def item(edit: LineEdit, line: str, **options):
    made = inline_item(edit, document(edit, line), "id-1", **options)
    span = made.range
    assert span.start.line == span.end.line == edit.line
    return made.insert_text, span.start.character, span.end.character


def test_the_range_is_in_the_clients_units():
    assert item(LineEdit.at(Position(2, 3), "a)", 1), "é🙂()") == ("a)", 4, 5)


def test_the_item_begins_at_the_cursor_and_covers_what_it_repeats():
    edit = LineEdit.at(Position(0, 2), "a)", 1)
    assert item(edit, "f():") == ("a)", 2, 3)


def test_line_ends_are_those_asked_for():
    edit = LineEdit(0, 0, 0, "a\nb")
    assert item(edit, "")[0] == "a\nb"
    assert item(edit, "", line_end="\r\n")[0] == "a\r\nb"


def test_accepting_runs_the_command_with_the_completions_id():
    edit = LineEdit(0, 0, 0, "a")
    there = document(edit, "")
    made = inline_item(edit, there, "id-1")
    assert (made.command.command, made.command.arguments) == ("foregram.accept", ["id-1"])
    assert made.filter_text is None


def test_a_completion_made_after_the_menus_item_contains_it():
    selected = LineEdit(0, 6, 9, "append")
    assert selected.applied("items.app()") == "items.append()"
    edit = selected.followed_by("(x)", 2)
    assert edit == LineEdit(0, 6, 11, "append(x)")
