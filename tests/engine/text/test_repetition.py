"""Going in circles."""

import pytest

from engine.text.lines import Written
from engine.text.repetition import repetition_cut, repetition_held, unrepeated

BLOCK = "a()\n  b()\n"


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("start()\n" + 2 * BLOCK, None),
        ("start()\n" + 3 * BLOCK, "start()\n" + BLOCK),
        (3 * "a()\n", None),
        (4 * "a()\n", "a()\n"),
        ("  }\n }\n}\nx\n", None),  # lines of other depths are other lines
        (3 * "a()\nb()\n\n", "a()\nb()\n\n"),
        ("x = [" + 20 * "0, ", None),
        ("x = [" + 60 * "0, ", "x = [" + 60 * "0, "),
        ("x = 1\n" + 60 * " ", None),
        ("x = 1\n" + 101 * " ", "x = 1\n" + 101 * " "),
    ],
)
def test_what_comes_again_and_again_is_cut_behind_its_first_copy(text, kept):
    cut = repetition_cut(Written.of(text))
    assert (None if cut is None else text[:cut]) == kept


def test_what_may_turn_out_a_repeat_is_held_back():
    written = Written.of("a()\nb()\na()\n")
    assert repetition_held(written) == len("a()\nb()\n")
    written.push("c")
    assert repetition_held(written) == len("a()\nb()\na()\nc")


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("start()\n" + 5 * "a()\n", "start()\na()"),
        ("start()\n" + 2 * "a()\nb()\n" + "a()\nb()", "start()\na()\nb()"),
        ("x = [" + 60 * "0, ", "x = ["),
        ("a()\n\na()\n\na()\n", "a()\n\na()\n\na()\n"),
    ],
)
def test_a_finished_text_keeps_the_first_copy_alone(text, kept):
    assert unrepeated(text) == kept
