"""Why a completion ended, in the two words that most APIs know."""

from engine.host.protocol import Done
from engine.request import FinishReason

_CUT = (FinishReason.MAX_TOKENS, FinishReason.CONTEXT_FULL, FinishReason.TIME)


def finish_reason(done: Done) -> str:
    """`length` where it would have gone on, else `stop`."""
    return "length" if done.finish_reason in (*_CUT, "prefilled") else "stop"
