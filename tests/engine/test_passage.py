"""The passage of another file that reads like the text around the cursor."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.passage import CursorLines, find_passage

ABOVE = [f"    first_value_{n} = measure(first, {n})" for n in range(16)]
BELOW = [f"    second_value_{n} = measure(second, {n})" for n in range(16)]
HOLE = [f"        between({n})" for n in range(5)]
OTHER = [f"other_{n} = paint({n})" for n in range(60)]


def cursor(above=ABOVE, below=BELOW):
    return CursorLines.around(above, below)


def passage(lines, **around):
    found = find_passage("\n".join(lines), cursor(**around))
    return None if found is None else [lines[number] for number in sorted(found.lines)]


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        ([*OTHER, *ABOVE, *HOLE, *BELOW, *OTHER], [*ABOVE[-3:], *HOLE, *BELOW[:3]]),
        # The same lines above alone show what follows them, those below what comes before.
        ([*OTHER, *ABOVE, *HOLE, *OTHER], [*ABOVE[-3:], *HOLE, *OTHER[:19]]),
        ([*OTHER, *HOLE, *BELOW, *OTHER], [*OTHER[-19:], *HOLE, *BELOW[:3]]),
    ],
)
def test_what_stands_next_to_the_same_lines_is_found_with_some_of_them(lines, found):
    assert passage(lines) == found


def test_a_rim_that_is_far_away_belongs_to_something_else():
    lines = [*ABOVE, *HOLE, *OTHER, *BELOW]
    assert passage(lines)[:8] == [*ABOVE[-3:], *HOLE]
    assert BELOW[0] not in passage(lines)


def test_blank_lines_and_indentation_make_no_difference():
    spaced = [line for one in ABOVE for line in (one.strip(), "")]
    assert passage([*spaced, *HOLE], below=[]) == [*spaced[-6:-1], "", *HOLE]


def test_the_place_where_most_lines_agree_is_taken():
    lines = [*ABOVE[-4:], "wrong", *OTHER, *ABOVE, "right", *OTHER]
    assert passage(lines)[3] == "right"


@pytest.mark.parametrize(
    "lines",
    [
        OTHER,
        [*ABOVE[-2:], *HOLE],
        ["}", "}", "}", "return"],
        [ABOVE[-1], "x", ABOVE[-2], "y", ABOVE[-3]],
    ],
    ids=["nothing", "two lines", "brackets", "no run"],
)
def test_a_few_equal_lines_are_no_passage(lines):
    assert passage(lines) is None
    assert passage(lines, above=[*ABOVE[:12], "}", "}", "}", "}"]) is None


def test_the_lines_next_to_those_that_agree_come_first():
    lines = [*OTHER, *ABOVE, *HOLE, *OTHER]
    found = find_passage("\n".join(lines), cursor())
    assert lines[found.lines[3]] == HOLE[0]
    lines = [*OTHER, *HOLE, *BELOW, *OTHER]
    found = find_passage("\n".join(lines), cursor())
    assert lines[found.lines[3]] == HOLE[-1]


def test_of_many_equal_places_those_that_face_each_other_are_taken():
    block = [*ABOVE[-6:], *HOLE]
    lines = [*block, *OTHER, *block, *BELOW[:6], *OTHER, *BELOW[:6], *OTHER, *block]
    assert passage(lines) == [*ABOVE[-3:], *HOLE, *BELOW[:3]]
    assert find_passage("\n".join(lines), cursor()).is_enclosed


def test_only_what_agrees_on_the_sides_that_are_shown_counts():
    chars = sum(len(line.strip()) for line in ABOVE[-8:])
    assert find_passage("\n".join([*ABOVE, *OTHER, *BELOW]), cursor()).agreeing < 2 * chars


@given(
    lines=st.lists(st.sampled_from([*ABOVE[-5:], *BELOW[:5], *HOLE, "", "}"]), max_size=60),
    above=st.integers(0, 16),
    below=st.integers(0, 16),
)
def test_whatever_is_found_are_lines_of_the_text(lines, above, below):
    found = find_passage("\n".join(lines), cursor(ABOVE[:above], BELOW[:below]))
    assert found is None or (found.lines and set(found.lines) <= set(range(len(lines))))
