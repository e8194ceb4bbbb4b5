"""One line or several: how much to write at a place, and what that means for the host."""

from enum import StrEnum

from engine.host.protocol import Bounds
from lsp_server.prompt.place import Place
from lsp_server.settings import Lines


class Scope(StrEnum):
    """How far a completion may go."""

    ONE_LINE = "one_line"
    DEEPER = "deeper"  # one line, and those after it that are indented deeper
    SEVERAL = "several"
    INVOKED = "invoked"  # several, for somebody who asked and waits without a limit


# A line has 19 characters in the median, 73 at most in 95 %.
BOUNDS = {
    Scope.ONE_LINE: Bounds(max_tokens=64, single_line=True),
    Scope.DEEPER: Bounds(max_tokens=128, time_limit_ms=300),
    Scope.SEVERAL: Bounds(max_tokens=192, time_limit_ms=1_500),
    Scope.INVOKED: Bounds(max_tokens=256),
}
_AUTOMATIC = {
    Place.COMMENT: Scope.ONE_LINE,
    Place.STRING: Scope.ONE_LINE,
    Place.MID_LINE: Scope.ONE_LINE,
    Place.EMPTY_BLOCK: Scope.SEVERAL,
    Place.BLANK_LINE: Scope.SEVERAL,
    Place.CODE: Scope.DEEPER,
}


def scope_at(
    place: Place, lines: Lines = "auto", *, is_invoked: bool = False, after_accept: bool = False
) -> Scope:
    """How much to write, within what the user wants; right after an accept the user goes on."""
    if lines == "single":
        return Scope.ONE_LINE
    if is_invoked:
        return Scope.INVOKED
    scope, is_wider = _AUTOMATIC[place], after_accept or lines == "multi"
    return Scope.SEVERAL if is_wider and scope is Scope.DEEPER else scope
