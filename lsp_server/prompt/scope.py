"""One line or several: how much to write at a place, and what that means for the host."""

from enum import StrEnum

from engine.host.protocol import Bounds
from lsp_server.prompt.place import Place

_MIN_MARGIN = 3.5  # logits; from the second line on, which nobody has asked for


class Scope(StrEnum):
    """How far a completion may go."""

    ONE_LINE = "one_line"
    DEEPER = "deeper"  # one line, and those after it that are indented deeper
    SEVERAL = "several"
    INVOKED = "invoked"  # several, for somebody who asked and waits without a limit


# A line has 19 characters in the median, 73 at most in 95 %.
BOUNDS = {
    Scope.ONE_LINE: Bounds(max_tokens=64, single_line=True),
    Scope.DEEPER: Bounds(max_tokens=128, time_limit_ms=300, min_margin=_MIN_MARGIN),
    Scope.SEVERAL: Bounds(max_tokens=192, time_limit_ms=1_500, min_margin=_MIN_MARGIN),
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


def scope_at(place: Place, *, is_invoked: bool = False, after_accept: bool = False) -> Scope:
    """How much to write; right after an accept the user wants to go on."""
    if is_invoked:
        return Scope.INVOKED
    scope = _AUTOMATIC[place]
    return Scope.SEVERAL if after_accept and scope is Scope.DEEPER else scope
