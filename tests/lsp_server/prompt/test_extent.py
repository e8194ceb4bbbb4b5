"""One line or several."""

import pytest

from lsp_server.prompt.extent import Extent, ExtentLimits, Trigger, bounds_for, extent_at
from lsp_server.prompt.place import Place


@pytest.mark.parametrize("place", Place)
def test_who_asks_gets_several_lines_without_a_time_limit(place):
    bounds = bounds_for(Trigger.INVOKED, place)
    assert not bounds.single_line
    assert bounds.time_limit_ms is None


@pytest.mark.parametrize(
    ("place", "extent"),
    [
        (Place.MID_LINE, Extent.ONE_LINE),
        (Place.COMMENT, Extent.ONE_LINE),
        (Place.STRING, Extent.ONE_LINE),
        (Place.EMPTY_BLOCK, Extent.SEVERAL),
        (Place.BLANK_LINE, Extent.SEVERAL),
        (Place.CODE, Extent.DEEPER),
    ],
)
def test_the_place_decides_where_nobody_asked(place, extent):
    assert extent_at(Trigger.AUTOMATIC, place) is extent


def test_after_an_accept_the_user_wants_to_go_on():
    assert extent_at(Trigger.AUTOMATIC, Place.CODE, after_accept=True) is Extent.SEVERAL
    assert extent_at(Trigger.AUTOMATIC, Place.STRING, after_accept=True) is Extent.ONE_LINE


def test_bounds_follow_the_limits():
    limits = ExtentLimits(line_tokens=10, deeper_tokens=20, deeper_time_ms=5)
    assert bounds_for(Trigger.AUTOMATIC, Place.MID_LINE, limits=limits).max_tokens == 10
    deeper = bounds_for(Trigger.AUTOMATIC, Place.CODE, limits=limits)
    assert (deeper.max_tokens, deeper.time_limit_ms, deeper.single_line) == (20, 5, False)
