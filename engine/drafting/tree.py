"""Draft trees: drafted tokens with parents, best first. Drafters fill them, verification walks them.

No torch here: a tree is a few small numpy arrays.
"""

from enum import IntEnum
from typing import NamedTuple

import numpy as np

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


class Draft(NamedTuple):
    """Drafted nodes below a root, the last emitted token. Shapes [nodes].

    Best first and parents before children, so every prefix of the arrays is a valid tree.
    """

    tokens: np.ndarray  # int32
    parents: np.ndarray  # int32, index of the parent node, -1 at the root
    probs: np.ndarray  # float64, calibrated probability that the node is accepted
    sources: np.ndarray  # uint8, Source
    cells: np.ndarray  # int32, cell of the source's acceptance table, for learning


def _blank(nodes: int) -> Draft:
    """Columns to be filled."""
    dtypes = (np.int32, np.int32, np.float64, np.uint8, np.int32)
    return Draft(*(np.empty(nodes, dtype) for dtype in dtypes))


EMPTY_DRAFT = _blank(0)
_FULL = -2  # the place of a node that found no room
_NONE = -1


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

    def add(self, draft: Draft) -> None:
        """Merge a draft."""
        if len(draft.tokens):
            self._num_nodes = _merge(
                *draft, *self._nodes, self._newest, self._before, self._num_nodes
            )

    def best(self, nodes: int) -> Draft:
        """Return the `nodes` likeliest nodes, best first, parents before children."""
        if not self._num_nodes:
            return EMPTY_DRAFT
        return Draft(*_likeliest(*self._nodes, self._num_nodes, nodes))


def select(draft: Draft, kept: np.ndarray) -> Draft:
    """Keep the nodes of the bool mask; a kept node's parent is kept."""
    return draft if kept.all() else Draft(*_select(*draft, kept))


_COLUMNS = "int32[::1], int32[::1], float64[::1], uint8[::1], int32[::1]"
_DRAFT = f"Tuple(({_COLUMNS}))"


@njit(f"int64({_COLUMNS}, {_COLUMNS}, int32[::1], int32[::1], int64)", cache=True)
def _merge(
    tokens: np.ndarray,
    parents: np.ndarray,
    probs: np.ndarray,
    sources: np.ndarray,
    cells: np.ndarray,
    held_tokens: np.ndarray,
    held_parents: np.ndarray,
    held_probs: np.ndarray,
    held_sources: np.ndarray,
    held_cells: np.ndarray,
    newest: np.ndarray,
    before: np.ndarray,
    num_nodes: int,
) -> int:
    """Add the nodes of the first five columns to the trie of the others; return its new size."""
    places = np.empty(len(tokens), np.int32)
    for node in range(len(tokens)):
        below = _NONE if parents[node] < 0 else places[parents[node]]
        places[node] = _FULL
        if below == _FULL:
            continue
        place = newest[below + 1]
        while place != _NONE and held_tokens[place] != tokens[node]:
            place = before[place]
        if place == _NONE:
            if num_nodes == len(held_tokens):
                continue
            place = num_nodes
            num_nodes += 1
            held_tokens[place], held_parents[place], held_probs[place] = tokens[node], below, -1.0
            before[place], newest[below + 1] = newest[below + 1], place
        places[node] = place
        if probs[node] > held_probs[place]:
            held_probs[place] = probs[node]
            held_sources[place], held_cells[place] = sources[node], cells[node]
    return num_nodes


@njit(f"{_DRAFT}({_COLUMNS}, int64, int64)", cache=True)
def _likeliest(
    tokens: np.ndarray,
    parents: np.ndarray,
    probs: np.ndarray,
    sources: np.ndarray,
    cells: np.ndarray,
    count: int,
    nodes: int,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The columns of the `nodes` likeliest of the first `count` nodes, best first.

    A parent is at least as likely as its child and came first, so the stable order has it first;
    hence every cut of the order is a tree.
    """
    order = np.argsort(-probs[:count], kind="mergesort")[:nodes]
    places = np.full(count, _NONE, np.int32)
    below = np.empty(len(order), np.int32)
    for place, node in enumerate(order):
        places[node] = place
        below[place] = places[parents[node]] if parents[node] >= 0 else _NONE
    return tokens[order], below, probs[order], sources[order], cells[order]


@njit(f"{_DRAFT}({_COLUMNS}, boolean[::1])", cache=True)
def _select(
    tokens: np.ndarray,
    parents: np.ndarray,
    probs: np.ndarray,
    sources: np.ndarray,
    cells: np.ndarray,
    kept: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The columns of the kept nodes."""
    places = np.cumsum(kept) - 1
    below = parents[kept]
    for place in range(len(below)):
        if below[place] >= 0:
            below[place] = places[below[place]]
    return tokens[kept], below, probs[kept], sources[kept], cells[kept]
