"""How the Neovim plugin counts ends of the server, in plain Lua."""

import pytest

from tests.support.lua_modules import load

crashes = load("crashes")


def test_three_ends_within_three_minutes_are_too_many():
    counts = crashes.new()
    assert [crashes.add(counts, time_s) for time_s in (0, 60, 120)] == [False, False, True]


def test_an_end_is_forgotten_after_three_minutes():
    counts = crashes.new()
    assert [crashes.add(counts, time_s) for time_s in (0, 60, 181, 300)] == [False] * 4
    assert crashes.add(counts, 301)


@pytest.mark.parametrize(
    ("printed", "words"),
    [
        ("", ""),
        ("Traceback:\n  File x\nValueError: no\n\n", "ValueError: no"),
        ("one\r\ntwo  \r\n \r\n", "two"),
    ],
)
def test_the_last_words_are_the_last_line_that_says_something(printed, words):
    assert crashes.last_words(printed) == words
