"""One line or several: how much to write at a place, and what that means for the host."""

from dataclasses import dataclass
from enum import StrEnum

from engine.host.protocol import Bounds
from lsp_server.prompt.place import Place


class Trigger(StrEnum):
    """Who asked for a completion."""

    INVOKED = "invoked"
    AUTOMATIC = "automatic"


class Extent(StrEnum):
    """How far a completion may go."""

    ONE_LINE = "one_line"
    DEEPER = "deeper"  # one line, and those after it that are indented deeper
    SEVERAL = "several"


@dataclass(frozen=True, slots=True)
class ExtentLimits:
    """What each extent may cost. A line has 19 characters in the median, 73 at most in 95 %."""

    line_tokens: int = 64
    deeper_tokens: int = 128
    several_tokens: int = 192
    invoked_tokens: int = 256
    deeper_time_ms: int = 300
    several_time_ms: int = 1_500
    min_margin: float = 3.5  # logits; from the second line on, which nobody has asked for


_AUTOMATIC = {
    Place.COMMENT: Extent.ONE_LINE,
    Place.STRING: Extent.ONE_LINE,
    Place.MID_LINE: Extent.ONE_LINE,
    Place.EMPTY_BLOCK: Extent.SEVERAL,
    Place.BLANK_LINE: Extent.SEVERAL,
    Place.CODE: Extent.DEEPER,
}


def extent_at(trigger: Trigger, place: Place, *, after_accept: bool = False) -> Extent:
    """How much to write; right after an accept the user wants to go on."""
    if trigger is Trigger.INVOKED:
        return Extent.SEVERAL
    extent = _AUTOMATIC[place]
    return Extent.SEVERAL if after_accept and extent is Extent.DEEPER else extent


def bounds_for(
    trigger: Trigger,
    place: Place,
    *,
    after_accept: bool = False,
    limits: ExtentLimits = ExtentLimits(),
) -> Bounds:
    """The host's bounds for what `extent_at` says; somebody who asked waits without a limit."""
    extent = extent_at(trigger, place, after_accept=after_accept)
    if extent is Extent.ONE_LINE:
        return Bounds(max_tokens=limits.line_tokens, single_line=True)
    if extent is Extent.DEEPER:
        return Bounds(
            max_tokens=limits.deeper_tokens,
            time_limit_ms=limits.deeper_time_ms,
            min_margin=limits.min_margin,
        )
    if trigger is Trigger.INVOKED:
        return Bounds(max_tokens=limits.invoked_tokens)
    return Bounds(
        max_tokens=limits.several_tokens,
        time_limit_ms=limits.several_time_ms,
        min_margin=limits.min_margin,
    )
