"""Where a second look may find an edit."""

import pytest

from engine.host.protocol import Position
from engine.request import Diagnostic
from lsp_server.edits.edit_script import Hunk
from lsp_server.edits.elsewhere import elsewhere

LINES = [f"line{number}" for number in range(60)]
RENAMED = Hunk(30, ("width = 1",), ("breadth = 1",))


def text_with(**rows):
    lines = list(LINES)
    for row, line in rows.items():
        lines[int(row[1:])] = line
    return lines


@pytest.mark.parametrize(
    ("lines", "edit", "expected"),
    [
        pytest.param(text_with(_5="f(width)", _50="width"), RENAMED, (50, 5), id="the nearest"),
        pytest.param(text_with(_32="width", _45="x, width"), RENAMED, (45, 8), id="not near"),
        pytest.param(text_with(_5="widths", _55="é🙂 width"), RENAMED, (55, 8), id="whole names"),
        pytest.param(LINES, RENAMED, None, id="it recurs nowhere"),
        pytest.param(
            text_with(_5="width", _7="width", _50="call", _51="call"),
            Hunk(30, ("call(width, height)",), ("",)),
            (50, 4),
            id="the first of equally rare names",
        ),
        pytest.param(
            text_with(_5="resize", _50="total", _55="total"),
            Hunk(30, ("size = total",), ("",)),
            (50, 5),
            id="a part of another name does not count",
        ),
        pytest.param(text_with(_5="width"), None, None, id="there was no edit"),
        pytest.param((*LINES, *["x"] * 1_000, "width"), RENAMED, None, id="very far"),
    ],
)
def test_a_name_that_an_edit_removed_is_looked_for_far_from_the_cursor(lines, edit, expected):
    found = list(elsewhere(lines, 30, edit, ()))
    assert found == ([] if expected is None else [Position(*expected)])


def test_the_nearest_diagnostic_that_is_far_from_such_a_name_comes_next():
    told = [Diagnostic(line, "undefined") for line in (31, 45, 19, 9)]
    lines = text_with(_44="width")
    assert list(elsewhere(lines, 30, RENAMED, told)) == [Position(44, 5), Position(19, 0)]
    assert list(elsewhere(lines, 30, RENAMED, told[:2])) == [Position(44, 5)]


def test_without_such_a_name_the_nearest_diagnostic_far_away_is_taken():
    told = [Diagnostic(line, "undefined") for line in (31, 44, 19, 500)]
    assert list(elsewhere(LINES, 30, RENAMED, told)) == [Position(19, 0)]
    assert list(elsewhere(LINES, 30, RENAMED, told[:1])) == []
