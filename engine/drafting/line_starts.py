"""Drafts how a line may begin, below every drafted token that ends one or indents it.

The pool knows what followed this very token. Here all line ends are alike, and all blanks: after one
of them stands what lately stood after another.
"""

from collections.abc import Sequence

import numpy as np
from numba import types

from engine.drafting.tree import TRIE, DraftTree, Source, child_of, place_below
from kernels.compiled import njit

_REMEMBERED = 8  # tokens after line ends, and as many after blanks
LINE_PRIOR = np.tile([0.15, 0.06, 0.05, 0.03, 0.02, 0.02, 0.01, 0.01], 2)  # by kind, and by age
_END, _BLANK = 1, 2
_SOURCE = int(Source.LINE_START)
_LEAST = 0.001  # probability of a node that is worth its row


def line_kinds(spellings: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """For each token of a vocabulary uint8: 1 if it has a line end, 2 if it is blank, else 0."""
    text, starts = spellings
    within = np.isin(text, np.frombuffer(b" \t", np.uint8)), text == ord("\n")
    blanks, ends = (np.diff(np.append(0, np.cumsum(one))[starts]) for one in within)
    lengths = np.diff(starts)
    kinds: np.ndarray = np.where(ends > 0, _END, _BLANK * ((blanks == lengths) & (lengths > 0)))
    return kinds.astype(np.uint8)


class LineStarts:
    """What lines of one text lately began with."""

    def __init__(
        self, kinds: np.ndarray, context: Sequence[int], probs: np.ndarray = LINE_PRIOR
    ) -> None:
        """Begin with a text's tokens. `probs` is the acceptance table's array, read at every draft."""
        self._kinds, self._probs = kinds, probs
        self._recent = np.full((2, _REMEMBERED), -1, np.int32)  # the newest first
        self._last = -1
        self.extend(np.array(context, np.int64))

    def extend(self, token_ids: np.ndarray) -> None:
        """Note the text's next tokens int64."""
        self._last = _note(self._kinds, self._recent, self._last, token_ids)

    def add_to(self, tree: DraftTree, likelier: float) -> None:
        """Add nodes below those of `tree` and its root, if they are `likelier` than that."""
        least = max(likelier, _LEAST)
        known = self._kinds, self._recent, self._probs
        tree.num_held = _add(tree.held, tree.num_held, *known, self._last, least)


@njit("int64(uint8[::1], int32[:, ::1], int64, int64[::1])", cache=True)
def _note(kinds: np.ndarray, recent: np.ndarray, last: int, token_ids: np.ndarray) -> int:
    """Bring what follows line ends and blanks to the front; return the last token."""
    for token in token_ids:
        kind = kinds[last] if 0 <= last < len(kinds) else 0
        if kind:
            known, place = recent[kind - 1], 0
            while place < len(known) - 1 and known[place] != token:
                place += 1
            while place > 0:
                known[place] = known[place - 1]
                place -= 1
            known[0] = token
        last = token
    return last


_ARGUMENTS = (TRIE, types.int64, types.uint8[::1], types.int32[:, ::1], types.float64[::1])


@njit(types.int64(*_ARGUMENTS, types.int64, types.float64), cache=True)
def _add(
    held: np.ndarray,
    num_held: int,
    kinds: np.ndarray,
    recent: np.ndarray,
    probs: np.ndarray,
    root: int,
    least: float,
) -> int:
    """Add what may begin a line below each node, also those added here; return the trie's size."""
    below = 0
    while below < num_held:
        token, prob = (held[below].token, held[below].prob) if below else (root, 1.0)
        kind = np.int64(kinds[token]) if 0 <= token < len(kinds) else 0
        left, place, rank = prob, held[below].newest, 0
        while place and kind:
            left -= held[place].prob
            place = held[place].before
        while kind and rank < recent.shape[1] and num_held < len(held) and left > least:
            cell = (kind - 1) * recent.shape[1] + rank
            token, rank = recent[kind - 1, rank], rank + 1
            if token < 0 or left * probs[cell] <= least or child_of(held, below, token):
                continue
            place = place_below(held, num_held, below, token)
            held[place].prob, held[place].cell = left * probs[cell], cell
            held[place].source = _SOURCE
            num_held += 1
        below += 1
    return num_held
