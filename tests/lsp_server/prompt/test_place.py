"""One line or several."""

import pytest

from lsp_server.prompt.place import Place, Scope, scope_at


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
def test_the_place_decides_unless_the_user_does(place, scope):
    wider = Scope.SEVERAL if scope is Scope.DEEPER else scope
    assert scope_at(place) is scope
    assert scope_at(place, after_accept=True) is scope_at(place, "multi") is wider
    for lines in ("auto", "multi"):
        assert scope_at(place, lines, is_invoked=True) is Scope.INVOKED
    for is_invoked in (False, True):
        assert scope_at(place, "single", is_invoked=is_invoked) is Scope.ONE_LINE
