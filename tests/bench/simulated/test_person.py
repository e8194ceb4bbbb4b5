"""The person who types: at their own pace, accepting correct ghost text."""

from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.bench.simulated.person import Action, Person

TARGET = "if x:\n    return foo_bar(x)\n\nreturn None"


@pytest.mark.parametrize(
    ("target", "shown", "kind", "text"),
    [
        (TARGET[5:], "", "key", "\n    "),  # Enter indents the next line
        (TARGET, "if x:\n    return", "all", "if x:\n    return"),
        (TARGET, "if x:\n    raise", "line", "if x:"),
        ("return x + y", "return x\n", "word", "return"),  # the line goes on
        (TARGET, "if y", "word", "if"),
        (TARGET, "while", "key", "i"),
    ],
)
def test_what_is_right_of_ghost_text_is_taken(target, shown, kind, text):
    assert Person(target, "1").act(shown, shown) == Action(kind, text)


def test_what_is_not_read_yet_is_not_taken():
    assert Person(TARGET, "1").act("if x:", "") == Action("key", "i")


def test_the_pace_is_the_seeds_and_the_places_alone():
    person, other = Person(TARGET, "1"), Person(TARGET, "1")
    person.act("if x:\n    return", "if x:\n    return")
    for _ in range(6):
        other.act("", "")
    other.position = person.position
    assert person.interval() == other.interval()
    assert Person(TARGET, "2").interval() != Person(TARGET, "1").interval()


def test_one_who_types_all_of_it_takes_the_intervals_of_all_keys():
    person, intervals = Person(TARGET, "1"), []
    while not person.is_done:
        intervals.append(person.interval())
        person.act("", "")
    assert intervals == person.own_intervals
    assert len(intervals) == len(TARGET.replace("\n    ", "\n"))


def test_keys_take_140_ms_in_a_line_and_500_ms_where_one_starts():
    person = Person("abcdefghi\n    " * 1000, "1")
    starts = person.own_intervals[::10]
    others = [one for number, one in enumerate(person.own_intervals) if number % 10]
    assert median(starts) == pytest.approx(0.5, rel=0.05)
    assert median(others) == pytest.approx(0.14, rel=0.05)


def test_a_slip_is_deleted_by_the_next_key_and_costs_alone_the_same_keys():
    person, written = Person(TARGET, "1", typos=1.0), ""
    kinds = []
    while not person.is_done:
        action = person.act("", "")
        kinds.append(action.kind)
        written = written[:-1] if action.kind == "erase" else written + action.text
    assert written == TARGET
    assert kinds[:3] == ["slip", "erase", "key"]
    assert len(kinds) == len(person.own_intervals)


@given(st.text("ab \n", min_size=1, max_size=20), st.data())
def test_whatever_is_shown_the_target_is_written(target, data):
    person, written = Person(target, "1"), ""
    while not person.is_done:
        right = st.integers(0, 4).map(lambda length: person.rest[:length])
        shown = data.draw(st.builds(str.__add__, right, st.text("ab \n", max_size=3)))
        read = data.draw(st.integers(0, len(shown)))
        action = person.act(shown, shown[:read])
        assert action.kind == "key" or shown[:read].startswith(action.text)
        written += action.text
    assert written == target
