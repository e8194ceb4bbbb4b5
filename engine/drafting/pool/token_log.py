"""The pool's memory: an append-only row of tokens with a source byte each, chained by n-gram.

It takes 13 bytes a token, and the heads of its chains.
"""

from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np

from engine.drafting.acceptance import AcceptanceTable
from engine.drafting.pool.chains import (
    BASE,
    FOUND,
    MATCH,
    MAX_FOUND,
    SEPARATOR,
    SKIPPED,
    Links,
    append,
    chain_all,
    gather,
    pop,
)
from engine.drafting.pool.expansion import MAX_NODES, PENDING, expand, read
from engine.drafting.tree import EMPTY_DRAFT, Draft, blank, cut
from engine.memory import sparse_zeros
from kernels.compiled import njit

MIN_HEAD_BITS, MAX_HEAD_BITS = 12, 22  # the heads start small


class Wanted(NamedTuple):
    """The text that must follow an occurrence, and tokens that must not."""

    text: bytes  # the tokens that follow begin with it
    spellings: tuple[np.ndarray, np.ndarray]  # of a vocabulary: bytes, and where each token begins
    excluded: tuple[int, ...] = ()  # the first tokens that follow; empty excludes nothing


class Continuation(NamedTuple):
    """Tokens int32 that follow an occurrence of a context, and how good the occurrence is."""

    tokens: np.ndarray
    worth: int  # as a match of so many tokens
    distance: int  # in slots, from the end of the log
    weight: float
    source: int
    kind: int  # EXACT, REALIGNED

    def closer(self, num_tokens: int) -> Self:
        """As if the match were longer by some tokens, which agree by their text."""
        worth = min(self.worth + num_tokens, MATCH)
        return self._replace(worth=worth, weight=self.weight * BASE**num_tokens)


class TokenLog:
    """Slots 0 to `length`; slot 0 is a separator. Nothing here checks capacity: see `free`."""

    def __init__(self, capacity: int, vocab_size: int) -> None:
        self._most_bits = min(max(capacity.bit_length() - 2, MIN_HEAD_BITS), MAX_HEAD_BITS)
        self.capacity = capacity
        self.length = 0
        self.tokens = sparse_zeros(capacity, np.int32)
        self.sources = sparse_zeros(capacity, np.uint8)
        self._links = Links(
            sparse_zeros(capacity, np.int32),
            sparse_zeros(capacity, np.int32),
            np.full(vocab_size, -1, np.int32),
            np.full(1 << MIN_HEAD_BITS, -1, np.int32),
        )
        self._found = np.empty(MAX_FOUND, FOUND)
        self._pending = np.empty(MAX_FOUND + MAX_NODES, PENDING)
        self.write([SEPARATOR], 0)

    @property
    def free(self) -> int:
        """Slots left."""
        return self.capacity - self.length

    @property
    def num_bytes(self) -> int:
        """Memory of the slots in use, and of the heads."""
        rows = self.tokens, self.sources, self._links.before1, self._links.before4
        heads = self._links.head1.nbytes + self._links.head4.nbytes
        return self.length * sum(row.itemsize for row in rows) + heads

    def clear(self) -> None:
        """Forget all."""
        self._links.head1.fill(-1)
        self._links.head4.fill(-1)
        self.length = 0
        self.write([SEPARATOR], 0)

    def write(self, ids: np.ndarray | list[int], source: int) -> int:
        """Append tokens or separators; return the first one's slot."""
        start = self.length
        content = np.asarray(ids, np.int32)
        self._grow_heads(start + content.size)
        # A plain int: numba takes 0.3 ms to look at an enum.
        self.length = append(self.tokens, self.sources, self._links, start, content, int(source))
        return start

    def _grow_heads(self, length: int) -> None:
        """Have a head for each slot, as far as that goes: most logs stay small."""
        bits = self._links.head4.size.bit_length() - 1
        if bits >= self._most_bits or length <= 1 << bits:
            return
        while bits < self._most_bits and length > 1 << bits:
            bits += 1
        self._links.head1.fill(-1)
        self._links = self._links._replace(head4=np.full(1 << bits, -1, np.int32))
        chain_all(self.tokens, self._links, self.length)

    def take_back(self, kept: int) -> None:
        """Undo writes down to length `kept`."""
        pop(self.tokens, self._links, self.length, kept)
        self.length = kept

    def find(self, context: np.ndarray) -> int:
        """Note where `context` int32 may continue; return the number of places."""
        count: int = gather(
            self.tokens, self.sources, self._links, self.length, context, self._found
        )
        return count

    def draft(self, found: int, nodes: int, depth: int, table: AcceptanceTable) -> Draft:
        """Return the likeliest `nodes` tokens behind the places found last, as a tree."""
        return self._expanded((self.tokens, self.length), found, nodes, depth, table)

    def draft_from(
        self, paths: Sequence[Continuation], nodes: int, table: AcceptanceTable
    ) -> Draft:
        """Return the likeliest `nodes` tokens of some paths, at most MAX_FOUND, as a tree."""
        parts, slot = [np.array([SEPARATOR], np.int32)], 1  # a log of their own
        for i, path in enumerate(paths[:MAX_FOUND]):
            start = slot if path.tokens.size else -1
            _, worth, distance, weight, source, kind = path
            self._found[i] = weight, start, distance, worth, source, kind
            parts += [path.tokens, parts[0]]
            slot += path.tokens.size + 1
        log = np.concatenate(parts), slot
        return self._expanded(log, len(paths[:MAX_FOUND]), nodes, slot, table)

    def continuations(
        self, found: int, num_tokens: int, wanted: Wanted | None = None
    ) -> list[Continuation]:
        """Return what stands at the places found last that are `wanted` and skip no tokens."""
        if wanted is None:
            kept = self._found[:found][self._found["kind"][:found] != SKIPPED]
        else:
            kept = self._found[pick(self.tokens, self.length, self._found, found, wanted)]
        if not kept.size:
            return []
        rows = np.empty((kept.size, num_tokens), np.int32)
        read(self.tokens, self.length, kept["slot"], rows)
        lengths = (rows >= 0).sum(axis=1).tolist()  # nothing stands behind a text's end
        columns = (
            kept[name].tolist() for name in ("worth", "distance", "weight", "source", "kind")
        )
        return [
            Continuation(row[:length], *values)
            for row, length, *values in zip(rows, lengths, *columns, strict=True)
        ]

    def _expanded(
        self,
        log: tuple[np.ndarray, int],
        found: int,
        nodes: int,
        depth: int,
        table: AcceptanceTable,
    ) -> Draft:
        if not found or depth < 1:
            return EMPTY_DRAFT
        limit = min(nodes, MAX_NODES)
        draft = blank(limit)
        written: int = expand(
            *log, self._found, found, limit, depth, table.probs, self._pending, draft
        )
        return cut(draft, written)


def pick(
    tokens: np.ndarray, length: int, found: np.ndarray, count: int, wanted: Wanted
) -> np.ndarray:
    """Places int64 in `found` of what goes on as `wanted`, without what skips tokens."""
    text, excluded = np.frombuffer(wanted.text, np.uint8), np.array(wanted.excluded, np.int32)
    picked = np.empty(count, np.int64)
    kept: int = _pick(tokens, length, found, text, wanted.spellings, excluded, picked)
    return picked[:kept]


@njit(cache=True)
def _pick(tokens, length, found, text, spellings, excluded, picked):
    kept = 0
    for place in range(len(picked)):
        slot = found[place].slot
        if (
            found[place].kind != SKIPPED
            and _begins(tokens, length, slot, text, spellings)
            and not _goes_on_with(tokens, length, slot, excluded)
        ):
            picked[kept] = place
            kept += 1
    return kept


@njit(cache=True)
def _begins(tokens, length, slot, text, spellings):
    """Whether the tokens from `slot` on spell `text` and whatever follows; -1 is a text's end."""
    all_text, starts = spellings
    done = 0
    while done < text.size:
        if slot < 0 or slot >= length or tokens[slot] < 0:
            return False
        token = tokens[slot]
        if token + 1 < starts.size:  # padded embeddings have more
            for place in range(starts[token], starts[token + 1]):
                if done < text.size and all_text[place] != text[done]:
                    return False
                done += 1
        slot += 1
    return True


@njit(cache=True)
def _goes_on_with(tokens, length, slot, excluded):
    """Whether the tokens from `slot` on are the excluded ones, where there are any."""
    for place in range(excluded.size):
        if slot < 0 or slot + place >= length or tokens[slot + place] != excluded[place]:
            return False
    return excluded.size > 0
