"""What llama.vim shows of an answer."""

import pytest

from tests.bench.simulated.llama_vim.hint import hint_of


@pytest.mark.parametrize(
    ("answer", "shown"),
    [
        (" = 1", [" = 1"]),
        (" = 1\n\n", [" = 1"]),
        (" = 1\n    y", [" = 1", "    y"]),
        ("", []),
        ("  \n ", []),
    ],
)
def test_an_answer_is_shown_without_its_last_line_ends(answer, shown):
    assert hint_of(answer, ["    x", "    return"], 0, 5) == shown


def test_on_a_blank_line_its_own_indentation_stands_there_already():
    assert hint_of("    x = 1\n    y", ["    ", "z"], 0, 4) == ["x = 1", "    y"]


def test_a_deeper_indentation_is_shown():
    assert hint_of("        x", ["    ", "z"], 0, 4) == ["    x"]


def test_indentation_that_would_be_taken_away_is_marked():
    assert hint_of("  x", ["    ", "z"], 0, 4) == ["\b\bx"]


@pytest.mark.parametrize(
    "answer",
    [
        "return y",  # the next line
        "return y\n# en",  # and the beginning of the one behind it
        "return y\n# end\nx = 1",
        "\nreturn y\n# end",
    ],
)
def test_what_only_repeats_the_lines_below_is_not_shown(answer):
    assert hint_of(answer, ["", "return y", "# end", "x = 1", ""], 0, 0) == []


def test_the_rest_of_the_line_is_not_repeated():
    assert hint_of(")", ["f()"], 0, 2) == []


def test_what_goes_on_otherwise_is_shown():
    answer = "return y\n# begin\nx = 1"
    assert hint_of(answer, ["", "return y", "# end", "x = 1", ""], 0, 0) == answer.split("\n")
