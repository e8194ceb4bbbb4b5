"""The simulated editor closes what the person opens, and the person types over it."""

from types import SimpleNamespace
from typing import Any

import pytest

from tests.bench.simulated.closing import ClosingEditor
from tests.support.editor import Editor


@pytest.fixture
def editor():
    client: Any = SimpleNamespace(text_document_did_change=lambda _params: None)
    editor = Editor(client, "file:///a.py")
    editor.before, editor.after = "x = ", "\nend\n"
    return editor


@pytest.fixture
def closing(editor):
    return ClosingEditor(editor, editor.after)


@pytest.mark.parametrize(
    ("typed", "closers"),
    [
        ("f(", ")"),
        ("f([", "])"),
        ("f(a)", ""),
        ("f('", "')"),
        ("f('a')", ""),
        ("don't", ""),
        ("f(\na", ")"),
    ],
)
def test_closers_stand_behind_the_cursor_until_they_are_typed_over(editor, closing, typed, closers):
    for key in typed:
        closing.type(key)
    assert closing.closers == closers
    assert editor.text == f"x = {typed}{closers}\nend\n"


def test_nothing_is_closed_before_a_word(editor, closing):
    editor.after = closing.suffix = "word\n"
    closing.type("(")
    assert editor.text == "x = (word\n"


def test_an_accepted_text_takes_the_place_of_what_it_closes(editor, closing):
    for key in "f(g(":
        closing.type(key)
    closing.accept("a)")
    assert editor.text == "x = f(g(a))\nend\n"
    assert closing.closers == ")"
