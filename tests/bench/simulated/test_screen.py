"""The screen's record: the times of texts, their new parts, and the errors in those."""

from dataclasses import dataclass

import pytest

from tests.bench.simulated.screen import Ghost, Screen


@dataclass
class Time:
    s: float = 0.0

    def __call__(self):
        return self.s


@pytest.fixture
def time():
    return Time()


@pytest.fixture
def screen(time):
    return Screen(time, "return foo(x)")


def test_a_text_counts_from_the_last_key_and_from_when_nothing_had_stood_there(screen, time):
    time.s = 1.0
    screen.write("r")
    time.s = 1.5
    shown = screen.show("eturn", 0.2)
    assert (shown.at, shown.key_at, shown.gap_s, shown.request_s) == (1.5, 1.0, 1.5, 0.2)


def test_characters_behind_the_first_wrong_one_are_wrong(screen):
    shown = screen.show("return bar(x)", 0.0)
    assert (shown.new_chars, shown.wrong_chars) == (13, 6)


def test_the_rest_of_a_text_that_was_typed_along_is_nothing_new(screen):
    screen.show("return foo", 0.0)
    screen.write("ret")
    assert screen.show("urn foo", 0.0) is None


def test_of_a_text_that_grows_the_addition_counts(screen):
    screen.show("return", 0.0)
    shown = screen.show("return foo+", 0.0)
    assert (shown.new_chars, shown.wrong_chars, shown.gap_s) == (5, 1, 0.0)


def test_it_remembers_when_something_was_visible(screen, time):
    screen.show("ret", 0.0)
    time.s = 1.0
    screen.show("return", 0.0)
    time.s = 2.0
    screen.write("x")
    time.s = 3.0
    screen.show("urn", 0.0)
    time.s = 4.0
    screen.close()
    assert screen.visible == [(0.0, 2.0), (3.0, 4.0)]


def test_text_that_an_answer_withdraws_or_changes_flickers(screen):
    for text in ("ret", "return", "raise", "", "return"):
        screen.show(text, 0.0)
    screen.write("r")
    assert screen.num_flickers == 2


def test_text_that_comes_back_behind_a_deleted_slip_is_nothing_new(screen):
    screen.show("return foo", 0.0)
    screen.write("x")
    screen.show("", 0.0)
    screen.erase()
    assert screen.ghost.text == ""
    assert screen.show("return foo", 0.0) is None


RETURN = Ghost().replaced("return", 1.0)


@pytest.mark.parametrize(
    ("answer", "old"), [("return x", "return"), ("ret", "ret"), ("raise", ""), ("", "")]
)
def test_an_answer_that_goes_on_keeps_since_when_its_beginning_stood_there(answer, old):
    ghost = RETURN.replaced(answer, 2.0)
    assert (ghost.text, ghost.standing_since(1.5)) == (answer, old)


def test_text_that_is_typed_along_stays_and_keeps_its_time():
    assert RETURN.typed_along("ret").standing_since(1.0) == "urn"
    assert RETURN.typed_along("raise").text == ""
