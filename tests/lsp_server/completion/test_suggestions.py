"""Typing along a completion: what is left of it is answered from memory."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.host.protocol import Position
from lsp_server.completion import suggestions
from lsp_server.completion.suggestions import PlacedSuggestion, Suggestion, SuggestionCache
from lsp_server.documents.anchor import Anchor
from lsp_server.documents.document import Snapshot
from tests.support.stopped_clock import StoppedClock


def at_bar(text: str, uri: str = "file:///a.py") -> Anchor:
    before, _, after = text.partition("|")
    line = before.count("\n")
    position = Position(line, len(before.rpartition("\n")[2]))
    lines = tuple((before + after).split("\n"))
    document = Snapshot(uri, "python", 1, 1, lines, "\n")
    return Anchor.of(document, position)


def remember(cache: SuggestionCache, document: str, text: str, replaced: int = 0) -> None:
    made = PlacedSuggestion.at(at_bar(document))
    cache.remember(replace(made, suggestion=Suggestion(text, replaced, f"id {text}")))


def rests(cache: SuggestionCache, document: str) -> list[tuple[str, int]]:
    found = cache.suggestions(at_bar(document))
    return [(each.text, each.replaced_chars_after_cursor) for each in found]


# Where the completion was made, its text, what it replaces; later, what is left, what it replaces.
TYPED = [
    ("x = |", "foo(a)", 0, "x = |", "foo(a)", 0),
    ("x = |", "foo(a)", 0, "x = fo|", "o(a)", 0),
    ("x = |\nz", "1\ny = 2", 0, "x = 1|\nz", "\ny = 2", 0),
    ("x = |\nz", "1\ny = 2", 0, "x = 1\ny|\nz", " = 2", 0),
    ("if a|\n", ":\n    b()\n    c()", 0, "if a:\n    |\n", "b()\n    c()", 0),
    ("if a|\n", ":\n    b()\n    c()", 0, "if a:\n    b()\n    |\n", "c()", 0),
    ("f(|)", "a, b)", 1, "f(a|)", ", b)", 1),
    ("f(|)", "a) + b", 1, "f(a)|", " + b", 0),  # typed over the bracket
    ("x = f|", "(a, b)", 0, "x = f(|)", "a, b)", 1),  # the editor has closed it
    ("x = f|", "(a, b)", 0, "x = f(a|)", ", b)", 1),
    ("x = f|", "([a], b)", 0, "x = f([|])", "a], b)", 2),
    ("x = f|\n", "(a,", 0, "x = f(|)\n", "a,", 0),
    ("f(|)", '"a")', 1, 'f("|")', 'a")', 2),
    ("f()|\nz", " {\n  a();\n}", 0, "f() {|}\nz", "\n  a();\n}", 1),
    ("f()|\nz", " {\n  a();\n}", 0, "f() {\n  |\n}\nz", "a();", 0),  # Enter between brackets
    ("f()|\nz", " {\n  a();\n}\n\ng();", 0, "f() {\n  |\n}\nz", "a();", 0),
]


@pytest.mark.parametrize(("made", "text", "covers", "now", "left", "replaced"), TYPED)
def test_the_rest_is_answered(made, text, covers, now, left, replaced):
    cache = SuggestionCache()
    remember(cache, made, text, covers)
    assert rests(cache, now) == [(left, replaced)]


@pytest.mark.parametrize(
    ("begun", "now", "typed"),
    [
        ("f(|)", "f(a|)", "a"),
        ("f(|)", "f(a)|", "a)"),  # typed over the closer
        ("f([|])", "f([a])|", "a])"),
        ("f(|)\nz", "f({\n  |\n})\nz", "{\n  "),  # Enter between brackets
        ("f|", "f(a|)", "(a"),  # the editor has closed it
        ("f(|)", "f(a|", None),
        ("f(|)", "f({\n  |\n}]", None),
    ],
)
def test_closers_of_the_editor_and_those_typed_over_end_no_running_completion(begun, now, typed):
    assert PlacedSuggestion.at(at_bar(begun)).typed_until(at_bar(now)) == typed


@pytest.mark.parametrize(
    "now",
    [
        "x = b|\nz",  # another character
        "x =|\nz",  # deleted beyond its beginning
        "x = foo|\ny",  # the text below has changed
        "x = foo| \nz",  # and that behind the cursor
        "x = foo(|]\nz",  # a bracket that no editor adds
        "y\nx = foo|\nz",  # the text above has changed
        "x = foo(a)|\nz",  # nothing is left
        "x = foo(a)b|\nz",
        "x = foo\n|\nz",
    ],
)
def test_a_text_that_does_not_fit_gets_nothing(now):
    cache = SuggestionCache()
    remember(cache, "x = |\nz", "foo(a)")
    assert rests(cache, now) == []


def test_a_completion_is_shown_again_after_deleting_or_undoing():
    cache = SuggestionCache()
    remember(cache, "x = |\nz", "foo(a)")
    assert rests(cache, "x = foa|\nz") == []
    assert rests(cache, "x = fo|\nz") == [("o(a)", 0)]
    assert rests(cache, "x = f|\ny") == []
    assert rests(cache, "x = f|\nz") == [("oo(a)", 0)]


def test_documents_are_kept_apart_and_can_be_forgotten():
    cache = SuggestionCache()
    remember(cache, "x = |", "foo(a)")
    there = at_bar("x = |", uri="file:///b.py")
    assert cache.suggestions(there) == []
    cache.forget("file:///b.py")
    assert rests(cache, "x = |") == [("foo(a)", 0)]
    cache.forget("file:///a.py")
    assert len(cache) == 0


def test_all_that_fit_are_answered_the_newest_first_each_once():
    cache = SuggestionCache()
    remember(cache, "x = |", "foo(a)")
    remember(cache, "x = |", "foo(b)")
    remember(cache, "x = f|", "oo(a)")
    assert rests(cache, "x = fo|") == [("o(a)", 0), ("o(b)", 0)]


def test_a_completion_keeps_its_id():
    cache = SuggestionCache()
    remember(cache, "x = |", "foo(a)")
    there = at_bar("x = fo|")
    assert cache.suggestions(there) == [Suggestion("o(a)", 0, "id foo(a)", 2)]


def test_completions_expire(monkeypatch):
    clock, cache = StoppedClock(), SuggestionCache()
    monkeypatch.setattr(suggestions, "time", SimpleNamespace(monotonic=clock))
    remember(cache, "x = |", "foo(a)")
    clock.now = 299.0
    remember(cache, "x = |", "bar")
    assert len(rests(cache, "x = |")) == 2
    clock.now = 300.0
    assert rests(cache, "x = |") == [("bar", 0)]
    assert len(cache) == 1


def test_memory_is_bounded_in_items_and_in_characters(monkeypatch):
    monkeypatch.setattr(suggestions, "_MOST_ITEMS", 3)
    monkeypatch.setattr(suggestions, "_MOST_CHARS", 100)
    cache = SuggestionCache()
    for number in range(10):
        remember(cache, "x = |", f"foo({number})")
    assert len(cache) == 3
    remember(cache, "x = |", "y" * 99)
    assert rests(cache, "x = |") == [("y" * 99, 0)]
    remember(cache, "x = |", "y" * 101)
    assert len(cache) == 0


TEXT = st.text(st.sampled_from("ab ()[]{}\"'\n🙂"), max_size=15)


@given(above=TEXT, rest=TEXT, text=TEXT, data=st.data())
def test_any_typed_beginning_leaves_exactly_the_rest(above, rest, text, data):
    cache = SuggestionCache()
    remember(cache, f"{above}|{rest}", text)
    count = data.draw(st.integers(0, len(text)))
    left = [] if count == len(text) else [(text[count:], 0)]
    assert rests(cache, f"{above}{text[:count]}|{rest}") == left
