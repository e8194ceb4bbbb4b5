"""What follows a context elsewhere, as plain tokens: for those who look at text."""

from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np

from engine.drafting.pool.chains import BASE, MATCH, SEPARATOR


class Continuation(NamedTuple):
    """Tokens int32 that follow an occurrence of a context, and how good the occurrence is."""

    tokens: np.ndarray
    match: int  # tokens of the context that agree
    weight: float
    source: int
    kind: int  # EXACT, REALIGNED

    def closer(self, num_tokens: int) -> Self:
        """As if the match were longer by some tokens, which agree by their text."""
        match = min(self.match + num_tokens, MATCH)
        return self._replace(match=match, weight=self.weight * BASE**num_tokens)


def lay_out(paths: Sequence[Continuation], found: np.ndarray) -> np.ndarray:
    """Write the paths into a log of their own and `found` FOUND; return the log's tokens int32."""
    separator = np.array([SEPARATOR], np.int32)
    parts, place = [separator], 1
    for i, path in enumerate(paths):
        slot = place if path.tokens.size else -1
        found[i] = path.weight, slot, path.match, path.source, path.kind
        parts += [path.tokens, separator]
        place += path.tokens.size + 1
    return np.concatenate(parts)
