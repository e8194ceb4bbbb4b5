"""The kernel that turns occurrences of a context into a draft tree, best node first.

The tree is the trie of what follows the occurrences. A node holds those that agree on its path;
its probability is that of its parent times the table's entry for its cell, which is found by the
longest match that supports it and its share of the weight among its siblings.
"""

import heapq
from typing import NamedTuple

import numpy as np
from numba import njit

LENGTHS = 64  # rows of the acceptance table: longest match plus depth
SHARES = 8  # its columns: share of weight among siblings
MAX_NODES = 512


class Nodes(NamedTuple):
    """Nodes of the tree under way: popped ones are the draft. Shapes [2 * MAX_NODES]."""

    tokens: np.ndarray  # int32
    parents: np.ndarray  # int32
    probs: np.ndarray  # float64
    sources: np.ndarray  # uint8
    cells: np.ndarray  # int32


def prior_acceptance() -> np.ndarray:
    """float64 [LENGTHS * SHARES]: what a fresh table believes (fitted on repositories' text)."""
    lengths = np.arange(LENGTHS)[:, None]
    shares = (np.arange(SHARES) + 0.5) / SHARES
    return (shares * (1 - 0.6 / (1 + 0.35 * lengths))).ravel()


@njit(cache=True)
def step(tokens, length, slot):
    """The slot behind `slot` as a reader of the document sees it, or -1 at a document's end."""
    slot += 1
    if slot >= length:
        return -1
    while tokens[slot] < -1:
        slot = -(tokens[slot] + 2)
    return slot if tokens[slot] >= 0 else -1


@njit(cache=True)
def group(tokens, found, low, high):
    """Sort occurrences [low, high) by the token they stand at; ended ones come first."""
    slots, lengths, weights, sources = found
    for i in range(low + 1, high):
        slot, length, weight, source, j = slots[i], lengths[i], weights[i], sources[i], i
        token = tokens[slot] if slot >= 0 else -1
        while j > low and token < (tokens[slots[j - 1]] if slots[j - 1] >= 0 else -1):
            slots[j], lengths[j], weights[j] = slots[j - 1], lengths[j - 1], weights[j - 1]
            sources[j] = sources[j - 1]
            j -= 1
        slots[j], lengths[j], weights[j], sources[j] = slot, length, weight, source


@njit(cache=True)
def expand(tokens, length, found, count, limit, table, nodes):
    """Write at most `limit` nodes, best first, parents before children; return their number.

    `found` is used up: its slots move on along the paths that are drafted.
    """
    heap = [(0.0, 0, 0, 0, 0, 0, 0, 0)]
    heap.pop()
    written, pushed, depth, parent, prob = 0, 0, 0, -1, 1.0
    low, high = 0, count
    while True:
        group(tokens, found, low, high)
        total = 0.0
        for i in range(low, high):
            total += found.weights[i]
        i = low
        while i < high:
            first, weight, longest, heaviest, source = i, 0.0, 0, -1.0, 0
            token = tokens[found.slots[i]] if found.slots[i] >= 0 else -1
            while i < high and (tokens[found.slots[i]] if found.slots[i] >= 0 else -1) == token:
                weight += found.weights[i]
                longest = max(longest, found.lengths[i])
                if found.weights[i] > heaviest:
                    heaviest, source = found.weights[i], int(found.sources[i])
                i += 1
            if token >= 0:
                cell = min(longest + depth, LENGTHS - 1) * SHARES
                cell += min(int(weight / total * SHARES), SHARES - 1)
                pushed += 1
                heapq.heappush(
                    heap, (-prob * table[cell], pushed, first, i, depth, parent, cell, source)
                )
        if len(heap) == 0 or written == limit:
            return written
        negative, _, low, high, depth, parent, cell, source = heapq.heappop(heap)
        prob = -negative
        nodes.tokens[written] = tokens[found.slots[low]]
        nodes.parents[written] = parent
        nodes.probs[written] = prob
        nodes.sources[written] = source
        nodes.cells[written] = cell
        parent, depth, written = written, depth + 1, written + 1
        for k in range(low, high):
            found.slots[k] = step(tokens, length, found.slots[k])
