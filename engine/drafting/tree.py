"""Draft trees: drafted tokens with parents, best first. Drafters fill them, verification walks them.

No torch here: a tree is a few small numpy arrays.
"""

from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numba import from_dtype, types

from kernels.compiled import njit


class Source(IntEnum):
    """Where a drafted token came from. 0 to 6 are sources of the n-gram pool."""

    DEAD = 0  # a tombstone: supplies context, drafts nothing
    EDITED_FILE = 1
    SUFFIX = 2
    OPEN_BUFFER = 3
    PREVIOUS_COMPLETION = 4
    GENERATED = 5
    REPOSITORY = 6
    WINDOW = 7
    RECYCLER = 8
    COPY = 9  # the text that an edit rewrites


class Draft(NamedTuple):
    """Drafted nodes below a root, the last emitted token. Shapes [nodes].

    Best first and parents before children, so every prefix of the arrays is a valid tree.
    """

    tokens: np.ndarray  # int32
    parents: np.ndarray  # int32, index of the parent node, -1 at the root
    probs: np.ndarray  # float64, calibrated probability that the node is accepted
    sources: np.ndarray  # uint8, Source
    cells: np.ndarray  # int32, cell of the source's acceptance table, for learning


_DTYPES = (np.int32, np.int32, np.float64, np.uint8, np.int32)
_DRAFT = types.NamedTuple([from_dtype(np.dtype(one))[::1] for one in _DTYPES], Draft)
_INTS = types.int32[::1]


def _blank(nodes: int) -> Draft:
    return Draft(*(np.empty(nodes, dtype) for dtype in _DTYPES))


EMPTY_DRAFT = _blank(0)
_FULL = -2  # the place of a node that found no room
_NONE = -1
_DEEPEST = 1 << 30  # tokens: no bound


class DraftTree:
    """Drafts of several drafters merged into one trie: equal children become one node.

    A merged node keeps the larger probability, and with it that drafter's source and cell.
    """

    def __init__(self, limit: int) -> None:
        """Hold at most `limit` nodes; what is added beyond is ignored, with all below it."""
        self._limit = limit
        self._num_nodes = 0
        self._nodes = _blank(limit)
        # Of the root, which comes first, and of each node: the newest child; of each node the
        # child of the same parent that came before it.
        self._newest = np.full(limit + 1, _NONE, np.int32)
        self._before = np.empty(limit, np.int32)

    def clear(self) -> None:
        """Hold no node."""
        self._num_nodes = 0
        self._newest[0] = _NONE

    def add(self, draft: Draft) -> None:
        """Merge a draft."""
        if len(draft.tokens):
            self._num_nodes = _merge(
                draft, self._nodes, self._newest, self._before, self._num_nodes
            )

    def best(self, nodes: int, depth: int = _DEEPEST) -> Draft:
        """Return the `nodes` likeliest nodes, at most `depth` tokens deep, best first."""
        if not self._num_nodes:
            return EMPTY_DRAFT
        best: Draft = _likeliest(self._nodes, self._num_nodes, nodes, depth)
        return best


def select(draft: Draft, kept: np.ndarray) -> Draft:
    """Keep the nodes of the bool mask; a kept node's parent is kept."""
    selected: Draft = draft if kept.all() else _select(draft, kept)
    return selected


@njit(types.int64(_DRAFT, _DRAFT, _INTS, _INTS, types.int64), cache=True)
def _merge(
    draft: Draft, held: Draft, newest: np.ndarray, before: np.ndarray, num_nodes: int
) -> int:
    """Add the nodes of a draft to the trie of those that are held; return its new size."""
    places = np.empty(len(draft.tokens), np.int32)
    for node in range(len(draft.tokens)):
        below = _NONE if draft.parents[node] < 0 else places[draft.parents[node]]
        places[node] = _FULL
        if below == _FULL:
            continue
        place = newest[below + 1]
        while place != _NONE and held.tokens[place] != draft.tokens[node]:
            place = before[place]
        if place == _NONE:
            if num_nodes == len(held.tokens):
                continue
            place = num_nodes
            num_nodes += 1
            held.tokens[place], held.parents[place] = draft.tokens[node], below
            held.probs[place] = -1.0
            before[place], newest[below + 1] = newest[below + 1], place
            newest[place + 1] = _NONE
        places[node] = place
        if draft.probs[node] > held.probs[place]:
            held.probs[place] = draft.probs[node]
            held.sources[place], held.cells[place] = draft.sources[node], draft.cells[node]
    return num_nodes


@njit(_DRAFT(_DRAFT, types.int64, types.int64, types.int64), cache=True)
def _likeliest(held: Draft, count: int, nodes: int, depth: int) -> Draft:
    """The `nodes` likeliest of the first `count` nodes that are not too deep, best first.

    A parent is at least as likely as its child and came first, so the stable order has it first;
    hence every cut of the order is a tree.
    """
    depths = np.ones(count, np.int64)
    for node in range(count):
        if held.parents[node] >= 0:
            depths[node] += depths[held.parents[node]]
    order = np.argsort(-held.probs[:count], kind="mergesort")
    order = order[depths[order] <= depth][:nodes]
    places = np.full(count, _NONE, np.int32)
    below = np.empty(len(order), np.int32)
    for place, node in enumerate(order):
        places[node] = place
        below[place] = places[held.parents[node]] if held.parents[node] >= 0 else _NONE
    return Draft(
        held.tokens[order], below, held.probs[order], held.sources[order], held.cells[order]
    )


@njit(_DRAFT(_DRAFT, types.boolean[::1]), cache=True)
def _select(draft: Draft, kept: np.ndarray) -> Draft:
    places = np.cumsum(kept) - 1
    below = draft.parents[kept]
    for place in range(len(below)):
        if below[place] >= 0:
            below[place] = places[below[place]]
    return Draft(
        draft.tokens[kept], below, draft.probs[kept], draft.sources[kept], draft.cells[kept]
    )
