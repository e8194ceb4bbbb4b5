"""Lines that splices change, and the text on both sides of a position."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import InputError
from engine.host.held_buffer import spliced, split_at
from engine.host.protocol import LineSplice, Position

LINES = st.lists(st.text("ab\u2028é", max_size=3), max_size=5).map(tuple)


def test_each_splice_stands_upon_the_one_before():
    splices = [LineSplice(0, 0, ("a", "b")), LineSplice(2, 2, ("c",)), LineSplice(0, 1, ())]
    assert spliced((), splices) == ("b", "c")
    with pytest.raises(InputError):
        spliced((), [splices[1]])


@given(LINES.filter(bool), st.data())
def test_the_text_falls_apart_at_a_position_and_nothing_is_lost(lines, data):
    line = data.draw(st.integers(0, len(lines) - 1))
    character = data.draw(st.integers(0, len(lines[line])))
    before, behind = split_at(lines, Position(line, character))
    assert before + behind == "\n".join(lines)
    assert before.count("\n") == line
    assert len(before.rpartition("\n")[2]) == character


def test_of_a_huge_text_the_near_lines_are_left_and_the_cuts_stay():
    lines = tuple(map(str, range(200_000)))
    cuts = set()
    for line in range(100_000, 100_100):
        before, behind = (part.split("\n") for part in split_at(lines, Position(line, 1)))
        assert before[-2] == str(line - 1)
        assert behind[1] == str(line + 1)
        assert 32_768 <= len(before) < 40_000
        assert 16_384 <= len(behind) < 24_000
        cuts.add((before[0], behind[-1]))
    assert len(cuts) == 1
    assert all(int(first) % 4096 == 0 for first, _ in cuts)


@pytest.mark.parametrize("position", [(-1, 0), (2, 0), (0, -1), (0, 2), (1, 1)])
def test_a_position_outside_of_the_text_is_refused(position):
    with pytest.raises(InputError, match=r"there is no line|has no character"):
        split_at(("x", ""), Position(*position))
