"""The Neovim plugin's own text handling, in plain Lua."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.lua_modules import load

parts = load("parts")


def next_word(text):
    """With three classes of characters; Vim has more."""
    kinds = [0 if one.isspace() else 2 if one == "_" or one.isalnum() else 1 for one in text]
    classes = dict(zip(text, kinds, strict=True))
    return parts.next_word(load.lists(list(text)), classes.get)


texts = st.text(alphabet="ab_9 \n().,é𝄞\t", max_size=30)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("total = 0", "total"),
        (" = 0", " ="),
        ("(numbers):\n    x", "("),
        ("):\n    x", "):"),
        ("\n    return x", "\n    return"),
        ("größe + 1", "größe"),
        ("   ", "   "),
        ("a", "a"),
    ],
)
def test_a_word_comes_with_the_white_space_before_it(text, word):
    assert next_word(text) == word


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("(n):\n    total = 0\n    return", "(n):"),
        ("\n    total = 0\n    return", "\n    total = 0"),
        ("\n\n    total", "\n\n    total"),
        ("total", "total"),
    ],
)
def test_a_line_is_the_rest_of_this_one_or_the_next(text, line):
    assert parts.next_line(text) == line


@given(texts.filter(bool))
def test_accepting_word_after_word_or_line_after_line_gives_the_text(text):
    for part in (next_word, parts.next_line):
        rest = text
        while rest:
            taken = part(rest)
            assert taken
            assert rest.startswith(taken)
            rest = rest[len(taken) :]


@given(st.text())
def test_lengths_are_utf16_units(text):
    text = text.encode("utf-8", "ignore").decode()
    assert parts.utf16_length(text) == len(text.encode("utf-16-le")) // 2


@given(texts)
def test_lines_are_cut_at_line_feeds_alone(text):
    assert list(parts.lines(text).values()) == text.split("\n")


@pytest.mark.parametrize(
    ("text", "column", "shown"),
    [("\tx", 0, "    x"), ("\tx", 3, " x"), ("a\tb\tc", 0, "a   b   c"), ("ab", 1, "ab")],
)
def test_tabs_are_drawn_as_far_as_the_next_stop(text, column, shown):
    assert parts.expand_tabs(text, 4, column) == shown


@pytest.mark.parametrize(
    ("line", "covered", "pieces"),
    [
        ("a, b)", ")", ("a, b", "")),
        ("x):", ")", ("x", ":")),
        ("f(x))", ")", ("f(x)", "")),
        ("x", ")", ("x", "")),
        ("x)", "", ("x)", "")),
    ],
)
def test_what_stays_on_the_screen_is_not_drawn_twice(line, covered, pieces):
    assert parts.around(line, covered) == pieces


def remaining(item_text, line, column, *, start=4, before="foo(", tail=")", covered=")"):
    item = load.table(text=item_text, start=start, before=before, tail=tail, covered=covered)
    return parts.remaining(item, line, column)


@pytest.mark.parametrize(
    ("line", "column", "left"),
    [
        ("foo()", 4, ("a, b)", 1)),
        ("foo(a)", 5, (", b)", 1)),
        ("foo(a, b)", 8, (")", 1)),
        ("foo(a, b)", 9, None),  # all of it was typed
        ("foo(x)", 5, None),
        ("fooo()", 5, None),
        ("foo()", 3, None),
        ("foo(a) + 1", 5, None),  # the tail was edited
    ],
)
def test_what_is_left_of_an_item_while_one_types_along(line, column, left):
    assert remaining("a, b)", line, column) == left


def test_a_bracket_that_a_plugin_closed_is_replaced_too():
    """`foo` was completed by `(a)`, the user typed `(`, and a plugin added `)`."""
    left = remaining("(a)", "foo()", 4, start=3, before="foo", tail="", covered="")
    assert left == ("a)", 1)


def test_a_bracket_that_the_item_does_not_repeat_is_kept():
    assert remaining("(a", "foo()", 4, start=3, before="foo", tail="", covered="") is None


@pytest.mark.parametrize(
    ("version", "other", "is_older"),
    [
        ("0.0.9", "0.1.0", True),
        ("0.1.0", "0.1.0", False),
        ("0.10.0", "0.9.9", False),
        ("1", "0.1.0", False),
        ("0", "0.1.0", True),
    ],
)
def test_versions_are_compared_by_their_numbers(version, other, is_older):
    assert parts.is_older(version, other) is is_older


@given(texts, texts)
def test_a_difference_turns_one_line_into_the_other_and_cuts_no_character(old, new):
    first, deleted, inserted = parts.difference(old, new)
    before, behind = old.encode()[:first], old.encode()[first + len(deleted.encode()) :]
    assert (before + inserted.encode() + behind).decode() == new
    assert before.decode() + deleted + behind.decode() == old


def test_a_difference_begins_at_a_character_where_two_share_bytes():
    assert parts.difference("a é", "a è") == (2, "é", "è")
    assert parts.difference("x𝄞", "x𝄟") == (1, "𝄞", "𝄟")
