"""A document's changes as a person sees them."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.common_start import common_ends
from lsp_server.edits.edit_script import EditScript, Hunk

LINES = st.lists(st.sampled_from("abc"), min_size=1, max_size=6).map(tuple)

DISTINCT = st.lists(st.sampled_from("abcdefgh"), min_size=1, unique=True).map(tuple)


def script_of(*texts, step_s=0.0):
    """The script of a text's states, each written as words."""
    script = EditScript(tuple(texts[0].split()))
    for number, text in enumerate(texts[1:]):
        script.follow(tuple(text.split()), number * step_s)
    return script


def applied(lines, hunks):
    for hunk in hunks:
        assert lines[hunk.row : hunk.end - hunk.num_added] == hunk.old
        lines = (*lines[: hunk.row], *hunk.new, *lines[hunk.old_end :])
    return lines


def changes(script):
    return [(hunk.row, " ".join(hunk.old), " ".join(hunk.new)) for hunk in script.hunks]


MINUTE = 60.0


@pytest.mark.parametrize(
    ("texts", "step_s", "expected"),
    [
        pytest.param(["a b", "ax b", "axy b"], 1, [(0, "a", "axy")], id="keys in one line"),
        pytest.param(["a b c", "x b c", "x y c"], 1, [(0, "a b", "x y")], id="neighbouring lines"),
        pytest.param(
            ["a b c d", "x b c d", "x b c y"], 1, [(0, "a", "x"), (3, "d", "y")], id="two places"
        ),
        pytest.param(
            ["a b", "x b", "y b"], MINUTE, [(0, "a", "x"), (0, "x", "y")], id="after a pause"
        ),
        pytest.param(["a b", "x b", "a b"], 1, [], id="undone"),
        pytest.param(["a b", "x b", "a b"], MINUTE, [], id="undone after a pause"),
        pytest.param(["a b", "x b", "y b", "a b"], MINUTE, [], id="two are undone in one step"),
        pytest.param(["a b", "x b", "y b", "x b", "a b"], MINUTE, [], id="undone one by one"),
        pytest.param(
            ["a b c d", "x b c d", "n x b c d", "n x b c y", "n a b c y"],
            MINUTE,
            [(0, "", "n"), (4, "d", "y")],
            id="an older one is undone",
        ),
        pytest.param(
            ["a b c d e", "a b c d x", "n a b c d x", "n a b c d xy"],
            1,
            [(0, "", "n"), (5, "e", "xy")],
            id="one goes on after another",
        ),
    ],
)
def test_changes_are_as_a_person_sees_them(texts, step_s, expected):
    assert changes(script_of(*texts, step_s=step_s)) == expected


@given(st.lists(LINES, min_size=1, max_size=8), st.sampled_from([0.0, MINUTE]))
def test_the_hunks_lead_from_the_first_text_to_the_last(texts, step_s):
    script = script_of(*map(" ".join, texts), step_s=step_s)
    assert applied(texts[0], script.hunks) == texts[-1]


@given(st.lists(LINES | DISTINCT, min_size=1, max_size=8), st.sampled_from([0.0, MINUTE]))
def test_nothing_is_left_once_all_is_undone(texts, step_s):
    texts = [*texts, *texts[::-1]]
    assert not script_of(*map(" ".join, texts), step_s=step_s).hunks


@given(st.lists(LINES | DISTINCT, min_size=2, max_size=8))
def test_a_change_to_any_earlier_text_is_known(texts):
    script = script_of(*map(" ".join, texts), step_s=MINUTE)
    for number in range(len(script.hunks)):
        earlier = applied(texts[0], script.hunks[:number])
        start, tail = common_ends(texts[-1], earlier)
        old, new = texts[-1][start : len(texts[-1]) - tail], earlier[start : len(earlier) - tail]
        assert script.is_undone_by(Hunk(start, old, new))


def test_a_change_that_brings_lines_back_is_known():
    script = script_of("a b c d", "a b c x", "n a b c x", step_s=MINUTE)
    assert script.is_undone_by(Hunk(4, ("x",), ("d",)))
    assert script.is_undone_by(Hunk(0, ("n",), ()))
    assert not script.is_undone_by(Hunk(4, ("x",), ("y",)))
    assert not script.is_undone_by(Hunk(2, ("b",), ("d",)))
    assert script.is_undone_by(Hunk(3, ("c", "x"), ("z", "d")))  # one of its lines
    assert script.is_undone_by(Hunk(3, ("c", "x"), ("z", "c", "d")))
    neighbours = script_of("a b c", "x b c", "x y c", step_s=MINUTE)
    assert neighbours.is_undone_by(Hunk(0, ("x",), ("a",)))
    assert neighbours.is_undone_by(Hunk(0, ("x", "y"), ("a", "b")))


def test_a_hunk_is_found_in_the_present_text():
    script = script_of("a b c d", "a b c x", "n a b c x", "n a z c x", step_s=MINUTE)
    regions = [script.region_of(number) for number in range(3)]
    assert regions == [(4, 5), (0, 1), (2, 3)]


@pytest.mark.parametrize("seed", range(20))
def test_regions_hold_all_lines_that_a_hunk_left(seed):
    """In random edits of distinct lines, a hunk's own lines are in its region, if they are left."""
    draw = random.Random(seed)  # noqa: S311 - a test's
    texts = [[f"l{n}" for n in range(12)]]
    for number in range(8):
        lines = list(texts[-1])
        place = draw.randrange(len(lines) + 1)
        lines[place : place + draw.randrange(3)] = [
            f"n{number}.{n}" for n in range(draw.randrange(3))
        ]
        texts.append(lines)
    script = script_of(*map(" ".join, texts), step_s=MINUTE)
    for number, hunk in enumerate(script.hunks):
        first, end = script.region_of(number)
        rows = [row for row, line in enumerate(texts[-1]) if line in hunk.new]
        assert all(first <= row < end for row in rows)
