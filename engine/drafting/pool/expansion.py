"""The kernel that turns occurrences of a context into a draft tree, best node first.

The tree is the trie of what follows the occurrences. A node stands for those that agree on its
path; its probability is its parent's times the table's entry for its cell. Cells are steps of a
score: of how the node's best occurrence was found, its longest match plus the node's depth, its
share of the weight among its siblings, how many occurrences agree, and how far the newest is.
"""

import numpy as np
from numba import from_dtype, types

from engine.drafting.pool.chains import FOUND
from kernels.compiled import njit

# Scores are log odds. A logistic regression over the nodes of 200 replayed completions gave their
# parts; those of either half of the packages did as well on the other half.
LEAST, WIDTH, CELLS = -6.0, 0.25, 40  # the steps; the first and the last are open
LENGTHS, SHARES = 64, 64  # longest match plus depth; steps of the share among siblings
_PARTS = (np.arange(SHARES) + 0.5) / SHARES
_SHARED = 0.40 * np.log(_PARTS / (1 - _PARTS))
_MATCHED = 0.88 * np.log(1 + np.arange(LENGTHS))
_AGREED = 0.48 * np.log(np.maximum(1, np.arange(256)))  # by the number of occurrences
_FAR = 0.16  # by the logarithm of the distance in slots
# Exact matches, realigned ones, then those that skip the last tokens, by whether the longest exact
# match has 0, 1, up to 3 or more tokens.
_KIND = np.array([0.0, 0.22, -0.99, -1.54, -2.23, -3.52]) - 1.97
SKIPPED = 2  # the kind of the latter
MAX_NODES = 512

# A node that may be drafted. They part the occurrences, so few are pending at a time.
PENDING = np.dtype(
    [
        ("prob", np.float64),
        ("low", np.int32),  # with `high` the node's run of sorted occurrences
        ("high", np.int32),
        ("parent", np.int32),  # a drafted node
        ("cell", np.int32),
    ],
    align=True,
)


def prior_acceptance() -> np.ndarray:
    """float64 [cells]: what a fresh table believes of each score."""
    odds = np.exp(LEAST + WIDTH * (np.arange(CELLS) + 0.5))
    prior: np.ndarray = odds / (1 + odds)
    return prior


@njit(cache=True, inline="always")
def key_of(tokens, slot, occurrence):
    """Sorts by the token at `slot`, 0 past an end; its lower 16 bits name the occurrence."""
    token = tokens[slot] if slot >= 0 else -1
    return (np.int64(token + 1) << 16) | occurrence


@njit(cache=True, inline="always")
def step(tokens, length, slot):
    """The slot behind `slot`, or -1 at the document's end.

    As chains.step, but numba's cache does not see changes of another file's kernels.
    """
    slot += 1
    return slot if 0 < slot < length and tokens[slot] >= 0 else -1


@njit(cache=True)
def read(tokens, length, slots, out):
    """Write the tokens from each slot on into a row of `out`; -1 behind."""
    out[:] = -1
    for row in range(len(slots)):
        slot, column = slots[row], 0
        while slot >= 0 and column < out.shape[1]:
            out[row, column] = tokens[slot]
            slot, column = step(tokens, length, slot), column + 1


@njit(cache=True, inline="always")
def advance(tokens, length, found, keys, low, high):
    """Move the occurrences [low, high) on by one token."""
    for i in range(low, high):
        occurrence = keys[i] & 0xFFFF
        found[occurrence].slot = step(tokens, length, found[occurrence].slot)
        keys[i] = key_of(tokens, found[occurrence].slot, occurrence)


@njit(cache=True, inline="always")
def sort(keys, low, high):
    """Shell sort of keys [low, high): few as a rule, and nearly in order."""
    gap = (high - low) // 2
    while gap > 0:
        for i in range(low + gap, high):
            key, j = keys[i], i
            while j >= low + gap and keys[j - gap] > key:
                keys[j] = keys[j - gap]
                j -= gap
            keys[j] = key
        gap //= 2


@njit(cache=True, inline="always")
def heaviest_of(found, keys, low, high):
    """The occurrence of [low, high) with the greatest weight, the first of several."""
    heaviest = keys[low] & 0xFFFF
    for i in range(low + 1, high):
        if found[keys[i] & 0xFFFF].weight > found[heaviest].weight:
            heaviest = keys[i] & 0xFFFF
    return heaviest


@njit(cache=True, inline="always")
def cell_of(found, keys, low, high, depth, total, longest_exact):
    """The cell of a node that stands for the occurrences [low, high)."""
    weight, longest, distance = 0.0, 0, found[keys[low] & 0xFFFF].distance
    for i in range(low, high):
        one = found[keys[i] & 0xFFFF]
        weight += one.weight
        longest, distance = max(longest, one.worth), min(distance, one.distance)
    kind = found[heaviest_of(found, keys, low, high)].kind
    return cell_at(kind, longest + depth, weight / total, high - low, distance, longest_exact)


@njit(cache=True, inline="always")
def cell_at(kind, match, share, count, distance, longest_exact):
    """The cell of a node whose heaviest occurrence is of `kind`, and whose newest so far away."""
    section = np.int64(kind)
    if section == SKIPPED:
        section += min(longest_exact, 2 + (longest_exact > 3))
    score = (
        _KIND[section] + _MATCHED[min(match, LENGTHS - 1)] + _AGREED[min(count, len(_AGREED) - 1)]
    )
    score += _SHARED[min(int(share * SHARES), SHARES - 1)] - _FAR * np.log(distance)
    return min(max(int((score - LEAST) / WIDTH), 0), CELLS - 1)


@njit(cache=True, inline="always")
def push(pending, heap, node, size):
    """Add a node to the heap of `size` nodes, the likeliest on top."""
    place = size
    while place > 0:
        above = (place - 1) // 2
        if pending[heap[above]].prob >= pending[node].prob:
            break
        heap[place] = heap[above]
        place = above
    heap[place] = node


@njit(cache=True, inline="always")
def sink(pending, heap, node, size):
    """Put a node in the place of the likeliest one of the heap of `size` nodes."""
    place = 0
    while True:
        below = 2 * place + 1
        if below >= size:
            break
        if below + 1 < size:
            below += pending[heap[below + 1]].prob > pending[heap[below]].prob
        if pending[heap[below]].prob <= pending[node].prob:
            break
        heap[place] = heap[below]
        place = below
    heap[place] = node


@njit(cache=True, inline="always")
def add_child(pending, heap, made, size, low, high, parent, prob, cell):
    """Make one node, which stands for the occurrences [low, high); return the number made."""
    node = pending[made]
    node.prob, node.cell, node.parent = prob, cell, parent
    node.low, node.high = low, high
    push(pending, heap, made, size)
    return made + 1


# Its types are named: numba would compile it for each mixture of constants and numbers in calls.
@njit(
    types.int64(
        from_dtype(PENDING)[::1], types.int32[::1], types.int64, types.int64,
        from_dtype(FOUND)[::1], types.int64[::1], types.int64, types.int64,
        types.int64, types.int64, types.float64, types.float64[::1], types.int64, types.int64,
    ),
    cache=True,
)  # fmt: skip
def add_children(
    pending, heap, made, size, found, keys, low, high, parent, depth, prob, table, longest, known
):
    """Make the nodes below one: runs of equal tokens in [low, high), but not those in [0, known).

    Returns the number of nodes made so far.
    """
    sort(keys, low, high)
    total = 0.0
    for i in range(low, high):
        total += found[keys[i] & 0xFFFF].weight
    end, other = low, 0
    while end < high:
        first, token = end, keys[end] >> 16
        while end < high and keys[end] >> 16 == token:
            end += 1
        while other < known and keys[other] >> 16 < token:
            other += 1
        if token > 0 and total > 0 and not (other < known and keys[other] >> 16 == token):
            cell = cell_of(found, keys, first, end, depth, total, longest)
            made = add_child(
                pending, heap, made, size, first, end, parent, prob * table[cell], cell
            )
            size += 1
    return made


@njit(cache=True)
def expand(tokens, length, found, count, limit, deepest, table, pending, nodes):
    """Write at most `limit` nodes of the draft `nodes`, best first; return their number.

    None is deeper than `deepest` tokens. `found` is used up: its slots move on along the paths that
    are drafted. Occurrences that skip tokens have a trie of their own, without the roots that the
    other one has.
    """
    keys, heap = np.empty(count, np.int64), np.empty(count + limit, np.int32)
    depths = np.zeros(limit + 1, np.int64)
    plain, first_skipped, longest = 0, count, 0
    for i in range(count):
        key = key_of(tokens, found[i].slot, i)
        if found[i].kind < SKIPPED:
            keys[plain] = key
            plain += 1
            longest = max(longest, found[i].worth)
        else:
            first_skipped -= 1
            keys[first_skipped] = key
    made = add_children(pending, heap, 0, 0, found, keys, 0, plain, -1, 0, 1.0, table, longest, 0)
    made = add_children(
        pending, heap, made, made, found, keys, plain, count, -1, 0, 1.0, table, longest, plain
    )  # fmt: skip
    written, size = 0, made
    while size and written < limit:
        top = heap[0]
        best = pending[top]
        low, high, parent, prob = best.low, best.high, best.parent, best.prob
        depth = 1 + (depths[parent] if parent >= 0 else 0)
        heaviest = found[heaviest_of(found, keys, low, high)]
        nodes.tokens[written], nodes.parents[written] = (keys[low] >> 16) - 1, parent
        nodes.probs[written], nodes.cells[written] = prob, best.cell
        nodes.sources[written] = heaviest.source
        depths[written] = depth
        written += 1
        if depth < deepest:
            advance(tokens, length, found, keys, low, high)
        if depth < deepest and high == low + 1 and heaviest.slot >= 0:
            # Most nodes are of one occurrence, and have but one child.
            match = heaviest.worth + depth
            best.cell = cell_at(heaviest.kind, match, 1.0, 1, heaviest.distance, longest)
            best.parent, best.prob = written - 1, prob * table[best.cell]
            sink(pending, heap, top, size)
            continue
        size -= 1
        sink(pending, heap, heap[size], size)
        if depth < deepest and high > low + 1:
            new = add_children(
                pending, heap, made, size, found, keys, low, high, written - 1, depth, prob, table,
                longest, 0,
            )  # fmt: skip
            size, made = size + new - made, new
    return written
