"""Ghost text on the screen: what stays of it, and since when each part of it stands there."""

from hypothesis import given
from hypothesis import strategies as st

from tests.bench.simulated.ghost import Ghost

TEXT = st.text("ab\n", max_size=8)


def test_text_that_is_typed_along_stays_and_keeps_its_time():
    ghost = Ghost.of("return x", 1.0).typed_along("ret")
    assert (ghost.text, ghost.standing_since(1.0)) == ("urn x", "urn x")


def test_an_answer_that_says_more_adds_what_is_new_now():
    ghost = Ghost.of("return", 1.0).replaced("return x", 2.0)
    assert (ghost.text, ghost.standing_since(1.5)) == ("return x", "return")


def test_an_answer_that_says_less_keeps_what_it_says():
    ghost = Ghost.of("return", 1.0).replaced("ret", 2.0)
    assert (ghost.text, ghost.standing_since(1.0)) == ("ret", "ret")


def test_an_answer_that_says_something_else_begins_anew():
    ghost = Ghost.of("return", 1.0).replaced("raise", 2.0)
    assert (ghost.text, ghost.standing_since(1.0)) == ("raise", "")


@given(TEXT, st.lists(TEXT, max_size=4), TEXT)
def test_the_pieces_are_the_text_whatever_comes(first, answers, typed):
    ghost = Ghost.of(first, 0.0)
    for now, text in enumerate(answers, start=1):
        ghost = ghost.replaced(text, float(now))
        assert ghost.text == text
    expected = ghost.text.removeprefix(typed) if ghost.text.startswith(typed) else ""
    assert ghost.typed_along(typed).text == expected
    assert ghost.text.startswith(ghost.standing_since(1.0))
