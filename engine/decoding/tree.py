"""Draft trees: drafted tokens with parents, best first. Drafters fill them, verification walks them.

No torch here: a tree is a few small numpy arrays.
"""

from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple

import numpy as np


class Source(IntEnum):
    """Where a drafted token came from. 0 to 9 are sources of the n-gram pool."""

    DEAD = 0  # a tombstone: supplies context, drafts nothing
    EDITED_FILE = 1
    SUFFIX = 2
    OPEN_BUFFER = 3
    PREVIOUS_COMPLETION = 4
    GENERATED = 5
    DELETED = 6
    REPOSITORY = 7
    HISTORY = 8
    LIBRARY = 9
    WINDOW = 10
    RECYCLER = 11


class Draft(NamedTuple):
    """Drafted nodes below a root, the last emitted token. Shapes [nodes].

    Best first and parents before children, so every prefix of the arrays is a valid tree.
    """

    tokens: np.ndarray  # int32
    parents: np.ndarray  # int32, index of the parent node, -1 at the root
    probs: np.ndarray  # float64, calibrated probability that the node is accepted
    sources: np.ndarray  # uint8, Source
    cells: np.ndarray  # int32, cell of the source's acceptance table, for learning


EMPTY_DRAFT = Draft(
    np.empty(0, np.int32),
    np.empty(0, np.int32),
    np.empty(0, np.float64),
    np.empty(0, np.uint8),
    np.empty(0, np.int32),
)


_FULL = -2  # the place of a node that found no room


class DraftTree:
    """Drafts of several drafters merged into one trie: equal children become one node.

    A merged node keeps the larger probability, and with it that drafter's source and cell.
    """

    def __init__(self, limit: int) -> None:
        """Hold at most `limit` nodes; what is added beyond is ignored, with all below it."""
        self._limit = limit
        self._children: dict[tuple[int, int], int] = {}
        self._nodes: list[tuple[int, int, float, int, int]] = []

    def __len__(self) -> int:
        return len(self._nodes)

    def add(self, draft: Draft) -> None:
        """Merge a draft."""
        places: list[int] = []
        rows = zip(*(column.tolist() for column in draft), strict=True)
        for token, parent, prob, source, cell in rows:
            below = -1 if parent < 0 else places[parent]
            places.append(
                self._merge(token, below, prob, source, cell) if below != _FULL else _FULL
            )

    def add_path(
        self,
        tokens: Sequence[int],
        probs: Sequence[float],
        source: Source,
        cells: Sequence[int],
    ) -> None:
        """Merge one chain; `probs` are those of the nodes, each at most its parent's."""
        below = -1
        for token, prob, cell in zip(tokens, probs, cells, strict=True):
            below = self._merge(token, below, prob, source, cell)
            if below == _FULL:
                return

    def best(self, nodes: int) -> Draft:
        """Return the `nodes` likeliest nodes, best first, parents before children."""
        if not self._nodes:
            return EMPTY_DRAFT
        tokens, parents, probs, sources, cells = map(np.array, zip(*self._nodes, strict=True))
        # A parent is at least as likely as its child and came first, so the stable order has it
        # first; hence every cut of the order is a tree.
        order = np.argsort(-probs, kind="stable")[:nodes]
        places = np.full(len(self._nodes) + 1, -1, np.int32)  # the last one stands for the root
        places[order] = np.arange(order.size)
        return Draft(
            tokens[order].astype(np.int32),
            places[parents[order]],
            probs[order],
            sources[order].astype(np.uint8),
            cells[order].astype(np.int32),
        )

    def _merge(self, token: int, below: int, prob: float, source: int, cell: int) -> int:
        """Return the node's place, or _FULL."""
        place = self._children.get((below, token))
        if place is None:
            if len(self._nodes) == self._limit:
                return _FULL
            place = self._children[below, token] = len(self._nodes)
            self._nodes.append((token, below, prob, source, cell))
        elif prob > self._nodes[place][2]:
            self._nodes[place] = (token, below, prob, source, cell)
        return place
