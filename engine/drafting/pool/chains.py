"""The log's kernels: tokens in a row, chained to the previous occurrence of the same n-gram.

A slot of the log holds a token (0 and up) or a separator (-1) that equals no token. Slot 0 is a
separator and every document begins with one: walks need no other left edge.
"""

from typing import NamedTuple

import numpy as np

from kernels.compiled import njit

ORDER = 4  # length of the hashed n-gram
CHAIN = 64  # occurrences kept per chain, newest first; 40 had 0.7 % fewer tokens a step
SKIP_CHAIN = 32  # likewise, where the last tokens are passed over
PATIENCE = 512  # slots looked at per chain, dead ones included
MATCH = 32  # longest match told apart
CONTEXT = 64  # tokens of a context that are looked at
BASE = 4.0  # an occurrence weighs BASE ** (length of its match)
SATURATED = 20  # longer matches weigh no more
_POWERS = BASE ** np.arange(SATURATED + 1)
CERTAIN = 8  # with an exact match this long, nothing else is looked for
SKIPS = 2  # last tokens of the context that may be passed over
REACH = 24  # tokens since an alignment was lost, at most
WINDOW = 16  # how much further the older text may be than the context
ANCHORS, ANCHOR_CHAIN = 4, 16  # alignments tried; occurrences looked at for each
MAX_FOUND = 2 * (CHAIN + SKIP_CHAIN * SKIPS) + ANCHORS * (REACH + WINDOW)
EXACT, REALIGNED, SKIPPED = 0, 1, 2  # how an occurrence was found
SEPARATOR = -1


# A place that may continue a context. Records, as an array of them goes into a kernel at once.
FOUND = np.dtype(
    [
        ("weight", np.float64),
        ("slot", np.int64),
        ("distance", np.int32),  # in slots, from the end of the log
        ("worth", np.uint8),  # as an exact match of so many tokens
        ("source", np.uint8),
        ("kind", np.uint8),  # EXACT, REALIGNED, SKIPPED
    ],
    align=True,
)


class Links(NamedTuple):
    """Chains of occurrences, newest first; -1 ends a chain."""

    before1: np.ndarray  # int32 [capacity], the previous slot with the same token
    before4: np.ndarray  # int32 [capacity], the previous slot with the same hash of four tokens
    head1: np.ndarray  # int32 [vocabulary], the newest slot of a token
    head4: np.ndarray  # int32 [2^k], the newest slot of a hash


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
        if slot < 0 or tokens[slot] < 0:
            return np.int64(-1)
        h = mix(h, tokens[slot])
        slot -= 1
    return np.int64(h & np.uint64(size - 1))


@njit(cache=True)
def append(tokens, sources, links, length, ids, source):
    """Write `ids` behind `length` and chain them; return the new length."""
    for token in ids:
        tokens[length] = token
        sources[length] = source
        _chain(tokens, links, length)
        length += 1
    return length


@njit(cache=True)
def _chain(tokens, links, slot):
    links.before1[slot] = links.before4[slot] = -1
    token = tokens[slot]
    if token < 0:
        return
    links.before1[slot] = links.head1[token]
    links.head1[token] = slot
    h = hash_before(tokens, slot, links.head4.size)
    if h >= 0:
        links.before4[slot] = links.head4[h]
        links.head4[h] = slot


@njit(cache=True)
def chain_all(tokens, links, length):
    """Chain all slots anew; the heads are empty."""
    for slot in range(length):
        _chain(tokens, links, slot)


@njit(cache=True)
def pop(tokens, links, length, kept):
    """Unchain the slots from `kept` on, newest first: the heads are as they were at `kept`."""
    for slot in range(length - 1, kept - 1, -1):
        token = tokens[slot]
        if token < 0:
            continue
        links.head1[token] = links.before1[slot]
        h = hash_before(tokens, slot, links.head4.size)
        if h >= 0:
            links.head4[h] = links.before4[slot]


@njit(cache=True)
def step(tokens, length, slot):
    """The slot behind `slot`, or -1 at the document's end."""
    slot += 1
    return slot if slot < length and tokens[slot] >= 0 else -1


@njit(cache=True)
def match_length(tokens, slot, context):
    """How many tokens before and at `slot` equal the end of `context`, at most MATCH."""
    most = min(MATCH, context.size)
    for match in range(most):
        if tokens[slot - match] != context[context.size - 1 - match]:
            return match
    return most


@njit(cache=True)
def keep(found, count, slot, distance, worth, weight, source, kind):
    """Write one occurrence; return the new count."""
    place = found[count]
    place.slot, place.worth, place.weight = slot, worth, weight
    place.distance, place.source, place.kind = distance, source, kind
    return count + 1


@njit(cache=True)
def follow(
    tokens, sources, before, slot, length, context, least, most, chain, found, count
):  # fmt: skip
    """Walk one chain; keep the slots behind matches of `least` to `most` tokens that are alive.

    Dead slots are passed over, a bounded number of them. Returns the new count of `found`.
    """
    room, patience = count + chain, PATIENCE
    while slot >= 0 and count < room and patience > 0:
        patience -= 1
        start = slot + 1
        if start < length and sources[start] > 0:
            match = match_length(tokens, slot, context)
            if least <= match <= most:
                weight = _POWERS[min(match, SATURATED)]
                source, distance = sources[start], length - start
                count = keep(found, count, start, distance, match, weight, source, EXACT)
        slot = before[slot]
    return count


@njit(cache=True)
def occurrences(tokens, sources, links, length, context, chain, found, count):
    """Keep the slots that follow the end of `context` elsewhere, at most twice `chain`.

    Matches of four tokens and more come first, then shorter ones, either newest first.
    """
    last, longest = context[context.size - 1], MATCH
    h = hash_before(context, context.size - 1, links.head4.size)
    if h >= 0:
        longest = ORDER - 1
        count = follow(
            tokens, sources, links.before4, links.head4[h], length, context, ORDER, MATCH,
            chain, found, count,
        )  # fmt: skip
    return follow(
        tokens, sources, links.before1, links.head1[last], length, context, 1, longest,
        chain, found, count,
    )  # fmt: skip


@njit(cache=True)
def find_anchors(tokens, sources, links, length, context, anchors):
    """Find text that the context followed until lately: equal up to `gap` tokens before its end.

    Writes rows (slot behind the match, match, gap) of `anchors` int64 [ANCHORS + 1, 3], the longest
    matches and shortest gaps first; returns their number.
    """
    count = 0
    for gap in range(1, min(REACH, context.size - ORDER) + 1):
        followed, departed = context[: context.size - gap], context[context.size - gap]
        slot = links.head4[hash_before(followed, followed.size - 1, links.head4.size)]
        patience = ANCHOR_CHAIN
        while slot >= 0 and patience > 0:
            start = slot + 1
            if start < length and sources[start] > 0:
                patience -= 1
                # What did not depart here is met again with a shorter gap.
                match = match_length(tokens, slot, followed) if tokens[start] != departed else 0
                if match >= ORDER:
                    row = count
                    while row > 0 and 2 * (match - anchors[row - 1, 1]) > gap - anchors[row - 1, 2]:
                        anchors[row] = anchors[row - 1]
                        row -= 1
                    anchors[row, 0], anchors[row, 1], anchors[row, 2] = start, match, gap
                    count = min(count + 1, ANCHORS)
            slot = links.before4[slot]
    return count


@njit(cache=True)
def realign(tokens, sources, links, length, context, found, count):
    """Look for the context's last token where text that it followed until lately goes on.

    An edit replaces a few tokens and goes on as before; the place where it does counts as a longer
    match than its own few tokens, by half of what matched before the gap. Returns the new count.
    """
    anchors = np.empty((ANCHORS + 1, 3), np.int64)
    last = context[context.size - 1]
    for row in range(find_anchors(tokens, sources, links, length, context, anchors)):
        slot, before, gap = anchors[row, 0], anchors[row, 1], anchors[row, 2]
        for offset in range(1, gap + WINDOW + 1):
            if slot < 0:
                break
            start = slot + 1
            if tokens[slot] == last and start < length and sources[start] > 0:
                match = match_length(tokens, slot, context)
                merit = min(match + (before - abs(offset - gap)) / 2, SATURATED)
                weight = BASE**merit
                place = _place(found, count, start)
                if place == count or weight > found[place].weight:
                    worth, source, distance = max(match, int(merit)), sources[start], length - start
                    keep(found, place, start, distance, worth, weight, source, REALIGNED)
                count = max(count, place + 1)
            slot = step(tokens, length, slot)
    return count


@njit(cache=True)
def _place(found, count, slot):
    for place in range(count):
        if found[place].slot == slot:
            return place
    return count


@njit(cache=True)
def skip(tokens, sources, links, length, context, skipped, found, count):
    """Keep what follows the context without its last tokens, as if others stood in their place."""
    shorter = context[: context.size - skipped]
    end = occurrences(tokens, sources, links, length, shorter, SKIP_CHAIN, found, count)
    for i in range(count, end):
        slot = found[i].slot
        for _ in range(skipped):
            slot = step(tokens, length, slot) if slot >= 0 else -1
        if slot >= 0 and sources[slot] > 0:
            merit = min(found[i].worth, SATURATED) - 2 * skipped
            weight = BASE**merit
            match, source, distance = found[i].worth, sources[slot], length - slot
            count = keep(found, count, slot, distance, match, weight, source, SKIPPED)
    return count


@njit(cache=True)
def gather(tokens, sources, links, length, context, found):
    """Collect the slots that may continue `context` int32; return their number."""
    last = context.size - 1
    if last < 0 or not 0 <= context[last] < links.head1.size:
        return 0
    count = occurrences(tokens, sources, links, length, context, CHAIN, found, 0)
    longest = 0
    for i in range(count):
        longest = max(longest, found[i].worth)
    if longest < CERTAIN:
        count = realign(tokens, sources, links, length, context, found, count)
        for skipped in range(1, min(SKIPS, last) + 1):
            count = skip(
                tokens, sources, links, length, context, skipped, found, count
            )  # fmt: skip
    return count
