"""The log's kernels: tokens in a row, chained to the previous occurrence of the same n-gram.

A slot of the log holds a token (0 and up), a separator (-1) that equals no token, or a reference
-(p + 2): the token of this place stands in slot p. References sew an edited document together, so
a walk over its text forwards or backwards meets what a reader of the document would meet.

Slot 0 is a separator and every document begins with one: walks need no other left edge.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

ORDER = 4  # length of the hashed n-gram
CHAIN = 64  # occurrences kept per chain, newest first
PATIENCE = 512  # slots looked at per chain, dead ones included
MATCH = 32  # longest context compared
BASE = 4.0  # an occurrence weighs BASE ** (length of its match) times its source's prior
SATURATED = 20  # longer matches weigh no more
SEPARATOR = -1


class Found(NamedTuple):
    """Slots that continue a context, and how they were found. Shapes [2 * CHAIN]."""

    slots: np.ndarray  # int64
    lengths: np.ndarray  # int64, tokens of the context that match
    weights: np.ndarray  # float64
    sources: np.ndarray  # uint8


class Links(NamedTuple):
    """Chains of occurrences, newest first; -1 ends a chain."""

    before1: np.ndarray  # int32 [capacity], the previous slot with the same token
    before4: np.ndarray  # int32 [capacity], the previous slot with the same hash of four tokens
    head1: np.ndarray  # int32 [vocabulary], the newest slot of a token
    head4: np.ndarray  # int32 [2^k], the newest slot of a hash


@njit(cache=True)
def resolve(tokens, slot):
    """Follow references to the slot that holds the token, or a separator."""
    while tokens[slot] < SEPARATOR:
        slot = -(tokens[slot] + 2)
    return slot


@njit(cache=True)
def mix(h, token):
    """One more token into a hash."""
    h = (h ^ np.uint64(token + 1)) * np.uint64(0x9E3779B97F4A7C15)
    return h ^ (h >> np.uint64(29))


@njit(cache=True)
def hash_before(tokens, slot, size):
    """Hash of the four tokens that end at `slot`, below `size`, a power of two; -1 if fewer."""
    h = np.uint64(0)
    for _ in range(ORDER):
        slot = resolve(tokens, slot)
        if tokens[slot] < 0:
            return np.int64(-1)
        h = mix(h, tokens[slot])
        slot -= 1
    return np.int64(h & np.uint64(size - 1))


@njit(cache=True)
def hash_context(context, size):
    """Hash of the last four tokens of a context, as `hash_before` has it; -1 if fewer."""
    if context.size < ORDER:
        return np.int64(-1)
    h = np.uint64(0)
    for k in range(ORDER):
        if context[context.size - 1 - k] < 0:
            return np.int64(-1)
        h = mix(h, context[context.size - 1 - k])
    return np.int64(h & np.uint64(size - 1))


@njit(cache=True)
def append(tokens, sources, links, length, ids, source):
    """Write `ids` behind `length` and chain them; return the new length."""
    for token in ids:
        tokens[length] = token
        sources[length] = source if token >= 0 else 0
        _chain(tokens, links, length)
        length += 1
    return length


@njit(cache=True)
def _chain(tokens, links, slot):
    links.before1[slot] = links.before4[slot] = -1
    token = tokens[resolve(tokens, slot)]
    if token < 0:
        return
    links.before1[slot] = links.head1[token]
    links.head1[token] = slot
    h = hash_before(tokens, slot, links.head4.size)
    if h >= 0:
        links.before4[slot] = links.head4[h]
        links.head4[h] = slot


@njit(cache=True)
def pop(tokens, links, length, kept):
    """Unchain the slots from `kept` on, newest first: the heads are as they were at `kept`."""
    for slot in range(length - 1, kept - 1, -1):
        token = tokens[resolve(tokens, slot)]
        if token < 0:
            continue
        links.head1[token] = links.before1[slot]
        h = hash_before(tokens, slot, links.head4.size)
        if h >= 0:
            links.head4[h] = links.before4[slot]


@njit(cache=True)
def match_length(tokens, slot, context):
    """How many tokens before and at `slot` equal the end of `context`, at most MATCH."""
    most = min(MATCH, context.size)
    for match in range(most):
        slot = resolve(tokens, slot)
        if tokens[slot] != context[context.size - 1 - match]:
            return match
        slot -= 1
    return most


@njit(cache=True)
def follow(tokens, sources, before, slot, length, context, least, most, priors, found, count):
    """Walk one chain; keep the slots behind matches of `least` to `most` tokens that are alive.

    Dead slots are passed over, a bounded number of them. Returns the new count of `found`.
    """
    room, patience = count + CHAIN, PATIENCE
    while slot >= 0 and count < room and patience > 0:
        patience -= 1
        start = slot + 1
        if start < length and sources[start] > 0:
            match = match_length(tokens, slot, context)
            if least <= match <= most:
                found.slots[count] = start
                found.lengths[count] = match
                found.weights[count] = BASE ** min(match, SATURATED) * priors[sources[start]]
                found.sources[count] = sources[start]
                count += 1
        slot = before[slot]
    return count


@njit(cache=True)
def gather(tokens, sources, links, length, context, priors, found):
    """Collect the slots that follow an occurrence of the end of `context`.

    Those of the four-token chain come first, then shorter matches, each newest first, at most
    CHAIN of either. Writes `found`, returns their number.
    """
    last = context.size - 1
    if last < 0 or not 0 <= context[last] < links.head1.size:
        return 0
    count, longest = 0, MATCH
    h = hash_context(context, links.head4.size)
    if h >= 0:
        longest = ORDER - 1
        count = follow(
            tokens, sources, links.before4, links.head4[h], length, context, ORDER, MATCH,
            priors, found, count,
        )  # fmt: skip
    return follow(
        tokens, sources, links.before1, links.head1[context[last]], length, context, 1, longest,
        priors, found, count,
    )  # fmt: skip
