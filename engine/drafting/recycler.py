"""Token recycling: after a token, what the model last held likely after it.

Every verified row, accepted or not, leaves its top tokens in a table by token. A draft walks it from
the current token, likeliest paths first (Luo et al. 2024, arXiv 2408.08696).
"""

import numpy as np

from engine.drafting.tree import Draft, Source, blank, cut
from engine.model.causal_lm import NUM_TOP
from kernels.compiled import njit

RECYCLER_WIDTH = NUM_TOP
_DEPTHS = 8
_NONE = -1
_SOURCE = int(Source.RECYCLER)
# Until the acceptance table knows better: the share of each rank, whatever the depth.
RECYCLER_PRIOR = np.tile([0.4, 0.14, 0.07, 0.05, 0.03, 0.025, 0.02, 0.015], _DEPTHS)


class Recycler:
    """The table of one model. It stays from one completion to the next."""

    def __init__(self, vocab_size: int, probs: np.ndarray = RECYCLER_PRIOR) -> None:
        """Start empty. `probs` float64 [cells] is the acceptance table's array, read at every draft."""
        self._next = np.full((vocab_size, RECYCLER_WIDTH), _NONE, np.int32)
        self._probs = probs

    @property
    def vocab_size(self) -> int:
        """Tokens that the table knows."""
        return len(self._next)

    @property
    def num_bytes(self) -> int:
        """Memory of the table."""
        return self._next.nbytes

    def update(self, token_ids: np.ndarray, top_ids: np.ndarray) -> None:
        """Take the top tokens int [rows, width], best first, of the rows that hold `token_ids`.

        Of rows with one token the first counts: drafts come best first, so its past is likelier.
        """
        # numpy keeps the last of repeated assignments.
        self._next[token_ids[::-1]] = top_ids[::-1]

    def draft(self, root: int, nodes: int) -> Draft:
        """Return the `nodes` likeliest nodes below the token `root`, or all there are."""
        draft = blank(nodes)
        return cut(draft, _walk(self._next, self._probs, root, draft))


@njit(cache=True)
def _walk(following: np.ndarray, shares: np.ndarray, root: int, draft: Draft) -> int:
    """Take the likeliest node at hand, offer its children, and so on; return how many it wrote.

    Of equals the one offered first comes first: by parent, then by rank.
    """
    nodes = len(draft.tokens)
    room = (nodes + 1) * following.shape[1]
    tokens, parents = np.empty(room, np.int32), np.empty(room, np.int32)
    probs, cells, depths = np.empty(room), np.empty(room, np.int32), np.empty(room, np.int32)
    token, prob, depth, num_offered = root, 1.0, 0, 0
    for place in range(nodes + 1):
        first_cell = min(depth, _DEPTHS - 1) * following.shape[1]
        for rank in range(following.shape[1]):
            if following[token, rank] != _NONE:
                tokens[num_offered], parents[num_offered] = following[token, rank], place - 1
                probs[num_offered] = prob * shares[first_cell + rank]
                cells[num_offered], depths[num_offered] = first_cell + rank, depth + 1
                num_offered += 1
        best = -1
        for offer in range(num_offered):
            if probs[offer] > 0 and (best < 0 or probs[offer] > probs[best]):
                best = offer
        if place == nodes or best < 0:
            break
        token, prob, depth = tokens[best], probs[best], depths[best]
        draft.tokens[place], draft.parents[place], draft.probs[place] = token, parents[best], prob
        draft.sources[place], draft.cells[place] = _SOURCE, cells[best]
        probs[best] = -prob  # taken
    return place
