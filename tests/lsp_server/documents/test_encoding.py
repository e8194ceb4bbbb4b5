"""Client characters and code points within a line."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lsprotocol import types

from lsp_server.documents.encoding import (
    choose_encoding,
    from_code_points,
    to_code_points,
)

UTF8, UTF16, UTF32 = (
    types.PositionEncodingKind.Utf8,
    types.PositionEncodingKind.Utf16,
    types.PositionEncodingKind.Utf32,
)
KINDS = (UTF8, UTF16, UTF32)
LINES = st.text(alphabet="ab\té\u0301\u2028日🦉👩\u200d\ud83d\ude00", max_size=20).filter(
    lambda line: "\ud83d\ude00" not in line  # a buffer holds such a pair as one character
)


@pytest.mark.parametrize(
    ("offered", "chosen"),
    [
        (None, UTF16),
        ([], UTF16),
        (["utf-7"], UTF16),
        ([UTF16, UTF8], UTF8),
        (["utf-7", "utf-8"], UTF8),
        ([UTF16, UTF8, UTF32], UTF32),
    ],
)
def test_the_cheapest_offered_encoding_is_chosen_and_utf16_by_default(offered, chosen):
    assert choose_encoding(offered) is chosen


@pytest.mark.parametrize(
    ("encoding", "widths"), [(UTF8, (1, 2, 3, 4)), (UTF16, (1, 1, 1, 2)), (UTF32, (1, 1, 1, 1))]
)
def test_each_character_has_the_width_of_its_encoding(encoding, widths):
    line = "aé日🦉"
    for num_points in range(5):
        assert from_code_points(line, num_points, encoding) == sum(widths[:num_points])
        assert to_code_points(line, sum(widths[:num_points]), encoding) == num_points


@pytest.mark.parametrize(("encoding", "inside"), [(UTF8, (2, 3, 4)), (UTF16, (2,))])
def test_a_position_inside_a_character_means_its_start(encoding, inside):
    assert {to_code_points("a🦉b", character, encoding) for character in inside} == {1}


@pytest.mark.parametrize("encoding", KINDS)
@pytest.mark.parametrize("line", ["", "ascii", "🦉é", "\ud83d"])
def test_a_position_beyond_the_line_means_its_end(encoding, line):
    assert to_code_points(line, 1000, encoding) == len(line)
    assert to_code_points(line, 2**31, encoding) == len(line)


@given(LINES, st.sampled_from(KINDS), st.data())
def test_code_points_survive_the_way_to_the_client_and_back(line, encoding, data):
    num_points = data.draw(st.integers(0, len(line)))
    assert to_code_points(line, from_code_points(line, num_points, encoding), encoding) == (
        num_points
    )


@given(LINES, st.sampled_from(KINDS), st.integers(0, 100))
def test_a_client_character_is_never_rounded_up(line, encoding, character):
    num_points = to_code_points(line, character, encoding)
    assert from_code_points(line, num_points, encoding) <= character
    if num_points < len(line):
        assert from_code_points(line, num_points + 1, encoding) > character
