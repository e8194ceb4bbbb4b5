"""One line or several."""

import pytest

from lsp_server.prompt.place import BOUNDS, Place, Scope, scope_at


@pytest.mark.parametrize("place", Place)
def test_who_asks_gets_several_lines_without_a_time_limit(place):
    bounds = BOUNDS[scope_at(place, is_invoked=True)]
    assert not bounds.single_line
    assert bounds.time_limit_ms is None


@pytest.mark.parametrize(
    ("place", "scope"),
    [
        (Place.MID_LINE, Scope.ONE_LINE),
        (Place.COMMENT, Scope.ONE_LINE),
        (Place.STRING, Scope.ONE_LINE),
        (Place.EMPTY_BLOCK, Scope.SEVERAL),
        (Place.BLANK_LINE, Scope.SEVERAL),
        (Place.CODE, Scope.DEEPER),
    ],
)
def test_the_place_decides_where_nobody_asked(place, scope):
    assert scope_at(place) is scope


def test_after_an_accept_the_user_wants_to_go_on():
    assert scope_at(Place.CODE, after_accept=True) is Scope.SEVERAL
    assert scope_at(Place.STRING, after_accept=True) is Scope.ONE_LINE


@pytest.mark.parametrize("place", Place)
def test_who_wants_single_lines_gets_no_more(place):
    for is_invoked in (False, True):
        assert scope_at(place, "single", is_invoked=is_invoked) is Scope.ONE_LINE


def test_who_wants_several_lines_gets_them_where_they_fit():
    assert scope_at(Place.CODE, "multi") is Scope.SEVERAL
    assert scope_at(Place.STRING, "multi") is Scope.ONE_LINE
    assert scope_at(Place.CODE, "multi", is_invoked=True) is Scope.INVOKED


def test_what_nobody_asked_for_ends_with_its_line_or_in_time():
    assert BOUNDS[Scope.ONE_LINE].max_tokens < BOUNDS[Scope.SEVERAL].max_tokens
    assert BOUNDS[Scope.ONE_LINE].single_line
    deeper, several = BOUNDS[Scope.DEEPER], BOUNDS[Scope.SEVERAL]
    assert not deeper.single_line
    assert (deeper.time_limit_ms, several.time_limit_ms) == (300, 1_500)
