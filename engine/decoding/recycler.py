"""Token recycling: after a token, what the model last held likely after it.

Every verified row leaves its top tokens behind, accepted or not, in a table of a few ids per token
of the vocabulary. A draft walks this table from the current token, likeliest paths first
(Luo et al. 2024, arXiv 2408.08696).
"""

import heapq
from typing import NamedTuple

import numpy as np

from engine.decoding.tree import EMPTY_DRAFT, Draft, Source

RECYCLER_WIDTH = 8
_DEPTHS = 8
_NONE = -1
# Until the acceptance table knows better: the share of each rank, whatever the depth.
RECYCLER_PRIOR = np.tile([0.4, 0.14, 0.07, 0.05, 0.03, 0.025, 0.02, 0.015], _DEPTHS)


class _Node(NamedTuple):
    """A possible node. Nodes compare by this order: likeliest first, then by parent and rank."""

    improbability: float  # the negative of the probability
    parent: int
    cell: int
    depth: int
    token: int


class Recycler:
    """The table of one model. It stays from one completion to the next."""

    def __init__(self, vocab_size: int, probs: np.ndarray = RECYCLER_PRIOR) -> None:
        """Start empty: 4.9 MB at 152k tokens.

        `probs` float64 [cells] is the acceptance table's array, read at every draft.
        """
        self._next = np.full((vocab_size, RECYCLER_WIDTH), _NONE, np.int32)
        self._probs = probs

    @property
    def vocab_size(self) -> int:
        """Tokens that the table knows."""
        return len(self._next)

    @property
    def width(self) -> int:
        """Top tokens that a row leaves."""
        return RECYCLER_WIDTH

    def update(self, token_ids: np.ndarray, top_ids: np.ndarray) -> None:
        """Take the top tokens int [rows, width], best first, of the rows that hold `token_ids`.

        Of rows with one token the first counts: drafts come best first, so its past is likelier.
        """
        # numpy keeps the last of repeated assignments.
        self._next[token_ids[::-1]] = top_ids[::-1]

    def draft(self, root: int, nodes: int) -> Draft:
        """Return the `nodes` likeliest nodes below the token `root`, or all there are."""
        taken: list[_Node] = []
        offered = self._children(_Node(-1.0, -1, 0, 0, root), -1)
        heapq.heapify(offered)
        while offered and len(taken) < nodes:
            node = heapq.heappop(offered)
            for child in self._children(node, len(taken)):
                heapq.heappush(offered, child)
            taken.append(node)
        return _as_draft(taken)

    def _children(self, node: _Node, place: int) -> list[_Node]:
        """What may follow `node`, whose place in the draft is `place`."""
        first_cell = min(node.depth, _DEPTHS - 1) * RECYCLER_WIDTH
        shares = self._probs[first_cell : first_cell + RECYCLER_WIDTH].tolist()
        tokens = self._next[node.token].tolist()
        return [
            _Node(node.improbability * share, place, first_cell + rank, node.depth + 1, token)
            for rank, (token, share) in enumerate(zip(tokens, shares, strict=True))
            if token != _NONE
        ]


def _as_draft(nodes: list[_Node]) -> Draft:
    if not nodes:
        return EMPTY_DRAFT
    return Draft(
        np.array([node.token for node in nodes], np.int32),
        np.array([node.parent for node in nodes], np.int32),
        np.array([-node.improbability for node in nodes]),
        np.full(len(nodes), Source.RECYCLER, np.uint8),
        np.array([node.cell for node in nodes], np.int32),
    )
