"""Draft trees: drafted tokens with parents, best first. Drafters fill them, verification walks them.

No torch here: a tree is a few small numpy arrays.
"""

from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numba import from_dtype, types

from kernels.compiled import inner_njit, njit


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
    LINE_START = 10


class Draft(NamedTuple):
    """Drafted nodes below a root, the last emitted token. Shapes [nodes].

    Best first and parents before children, so every prefix of the arrays is a valid tree.
    """

    tokens: np.ndarray  # int32
    parents: np.ndarray  # int32, index of the parent node, -1 at the root
    probs: np.ndarray  # float64, calibrated probability that the node is accepted
    sources: np.ndarray  # uint8, Source
    cells: np.ndarray  # int32, cell of the source's acceptance table, for learning


_DTYPES = tuple(map(np.dtype, (np.int32, np.int32, np.float64, np.uint8, np.int32)))
_DRAFT = types.NamedTuple([from_dtype(one)[::1] for one in _DTYPES], Draft)


def blank(nodes: int) -> Draft:
    """A draft of `nodes` nodes that are yet to be written."""
    return Draft(*[np.empty(nodes, dtype) for dtype in _DTYPES])


def cut(draft: Draft, nodes: int) -> Draft:
    """Keep the `nodes` best nodes."""
    if nodes >= len(draft.tokens):
        return draft
    return Draft(*[column[:nodes] for column in draft])


EMPTY_DRAFT = blank(0)
_FULL = -1  # the place of a node that found no room
DEEPEST = 1 << 30  # tokens: no bound
# A node of the trie. One array of records goes into a kernel sooner than an array for each field.
_HELD = np.dtype(
    [
        ("prob", np.float64),
        ("token", np.int32),
        ("parent", np.int32),  # a place in the trie; the root is at 0
        ("cell", np.int32),
        ("newest", np.int32),  # child; 0 where there is none
        ("before", np.int32),  # the child of the same parent that came before; 0 likewise
        ("source", np.uint8),
    ],
    align=True,
)
TRIE = from_dtype(_HELD)[::1]


class DraftTree:
    """Drafts of several drafters merged into one trie: equal children become one node.

    A merged node keeps the larger probability, and with it that drafter's source and cell.
    """

    def __init__(self, limit: int) -> None:
        """Hold at most `limit` nodes; what is added beyond is ignored, with all below it."""
        self.held = np.zeros(1 + limit, _HELD)
        self.num_held = 1  # the root

    def clear(self) -> None:
        """Hold no node."""
        self.num_held = 1
        self.held["newest"][0] = 0

    def add(self, draft: Draft) -> None:
        """Merge a draft."""
        if len(draft.tokens):
            self.num_held = _merge(draft, self.held, self.num_held)

    def best(self, nodes: int, depth: int = DEEPEST) -> Draft:
        """Return the `nodes` likeliest nodes, at most `depth` tokens deep, best first."""
        if self.num_held == 1:
            return EMPTY_DRAFT
        best = blank(min(nodes, self.num_held - 1))
        written: int = _likeliest(self.held, self.num_held, depth, best)
        return cut(best, written)


def select(draft: Draft, kept: np.ndarray) -> Draft:
    """Keep the nodes of the bool mask; a kept node's parent is kept."""
    selected: Draft = draft if kept.all() else _select(draft, kept)
    return selected


@inner_njit(inline="always")
def child_of(held: np.ndarray, below: int, token: int) -> int:
    """The place of a node's child; 0 where it has none of that token."""
    place: int = held[below].newest
    while place and held[place].token != token:
        place = held[place].before
    return place


@inner_njit(inline="always")
def place_below(held: np.ndarray, place: int, below: int, token: int) -> int:
    """Make a node's child at a free place, which it returns."""
    one = held[place]
    one.token, one.parent, one.prob, one.newest = token, below, -1.0, 0
    one.before, held[below].newest = held[below].newest, place
    return place


@njit(types.int64(_DRAFT, TRIE, types.int64), cache=True)
def _merge(draft: Draft, held: np.ndarray, num_held: int) -> int:
    """Add the nodes of a draft to the trie of those that are held; return its new size."""
    places = np.empty(len(draft.tokens), np.int32)
    for node in range(len(draft.tokens)):
        below = 0 if draft.parents[node] < 0 else places[draft.parents[node]]
        places[node] = _FULL
        if below == _FULL:
            continue
        place = child_of(held, below, draft.tokens[node])
        if not place:
            if num_held == len(held):
                continue
            place = place_below(held, num_held, below, draft.tokens[node])
            num_held += 1
        places[node] = place
        if draft.probs[node] > held[place].prob:
            one = held[place]
            one.prob, one.source = draft.probs[node], draft.sources[node]
            one.cell = draft.cells[node]
    return num_held


@njit(types.int64(TRIE, types.int64, types.int64, _DRAFT), cache=True)
def _likeliest(held: np.ndarray, num_held: int, depth: int, best: Draft) -> int:
    """Fill `best` with the likeliest nodes, none deeper than `depth`; return their number.

    A parent is at least as likely as its child and came first, so the stable order has it first;
    hence every cut of the order is a tree.
    """
    order, depths = np.empty(num_held, np.int32), np.zeros(num_held, np.int32)
    for node in range(1, num_held):
        depths[node] = depths[held[node].parent] + 1
        place = node  # each draft came best first, so few nodes move far
        while place > 1 and held[order[place - 1]].prob < held[node].prob:
            order[place] = order[place - 1]
            place -= 1
        order[place] = node
    places, written = np.full(num_held, -1, np.int32), 0
    for node in order[1:]:
        if depths[node] <= depth and written < len(best.tokens):
            one = held[node]
            best.tokens[written], best.parents[written] = one.token, places[one.parent]
            best.probs[written], best.sources[written] = one.prob, one.source
            best.cells[written], places[node] = one.cell, written
            written += 1
    return written


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
