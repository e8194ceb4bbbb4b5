"""Constraints on the next token, which plain and lookahead decoding apply alike."""

from bisect import bisect_left
from dataclasses import dataclass

import numpy as np

from engine.model.vocabulary import Vocabulary


class ByteTrie:
    """The bytes of all tokens but special ones, sorted, so that a prefix selects a range."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        texts = [vocabulary.bytes_of(token_id) for token_id in range(len(vocabulary))]
        for token_id in vocabulary.special_ids:
            texts[token_id] = b""
        order = sorted(range(len(texts)), key=texts.__getitem__)
        num_empty = texts.count(b"")
        self._ids = np.array(order[num_empty:], np.int64)
        self._bytes = [texts[token_id] for token_id in order[num_empty:]]

    def ids_completing(self, remaining: bytes) -> np.ndarray:
        """Return the tokens that begin with `remaining` or that it begins with.

        Ascending int64 ids. An empty `remaining` allows all tokens.
        """
        pieces = [self._beginning_with(remaining)]
        pieces += [self._equal_to(remaining[:length]) for length in range(1, len(remaining))]
        return np.sort(np.concatenate(pieces))

    def _beginning_with(self, start: bytes) -> np.ndarray:
        first = bisect_left(self._bytes, start)
        after = _successor(start)
        return self._ids[first : bisect_left(self._bytes, after, first) if after else None]

    def _equal_to(self, text: bytes) -> np.ndarray:
        first = bisect_left(self._bytes, text)
        return self._ids[first : bisect_left(self._bytes, text + b"\0", first)]


@dataclass(frozen=True, slots=True)
class Constraint:
    """Token healing: the text must begin with `owed`, the bytes dropped before the cursor."""

    owed: bytes
    trie: ByteTrie

    @property
    def allowed_ids(self) -> np.ndarray:
        """Return the ids of the tokens that may come next, int64 ascending."""
        return self.trie.ids_completing(self.owed)

    def allows(self, token_id: int) -> bool:
        """Whether the token may come next."""
        vocabulary = self.trie.vocabulary
        is_text = token_id not in vocabulary.special_ids
        return is_text and self._fits(vocabulary.bytes_of(token_id))

    def after(self, token_id: int) -> "Constraint | None":
        """Return the constraint after a token, if any. Raises ValueError if it is not allowed."""
        token = self.trie.vocabulary.bytes_of(token_id)
        if not self._fits(token):
            raise ValueError(f"{token!r} does not keep to {self.owed!r}")
        return healed_start(self.owed[len(token) :], self.trie)

    def _fits(self, token: bytes) -> bool:
        return bool(token) and (token.startswith(self.owed) or self.owed.startswith(token))


def healed_start(owed: bytes, trie: ByteTrie) -> Constraint | None:
    """Return the constraint of a prompt that `owed` was dropped from; None allows all tokens."""
    return Constraint(owed, trie) if owed else None


def _successor(start: bytes) -> bytes:
    """Return the least bytes above all that begin with `start`, or empty bytes."""
    stem = start.rstrip(b"\xff")
    return stem[:-1] + bytes([stem[-1] + 1]) if stem else b""
