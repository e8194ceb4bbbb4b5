"""What the next token has to keep to. Plain and lookahead decoding apply the same constraint."""

from bisect import bisect_left
from dataclasses import dataclass

import numpy as np

from engine.model.vocabulary import Vocabulary


class ByteTrie:
    """The vocabulary's texts in the order of their bytes, where a prefix is a range.

    Special tokens are no texts.
    """

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
        """Tokens that keep to `remaining`: they begin with it, or it begins with them.

        Ascending int64 ids. Of nothing remaining, all tokens.
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
    """Token healing: the text has to begin with `owed`, the bytes that were cut off at the cursor."""

    owed: bytes
    trie: ByteTrie

    @property
    def allowed_ids(self) -> np.ndarray:
        """Ascending int64 ids of the tokens that may come next."""
        return self.trie.ids_completing(self.owed)

    def allows(self, token_id: int) -> bool:
        """Tell whether the token is among them."""
        vocabulary = self.trie.vocabulary
        is_text = token_id not in vocabulary.special_ids
        return is_text and self._fits(vocabulary.bytes_of(token_id))

    def after(self, token_id: int) -> "Constraint | None":
        """What is owed behind a token, if anything. Raises ValueError for one that is not allowed."""
        token = self.trie.vocabulary.bytes_of(token_id)
        if not self._fits(token):
            raise ValueError(f"{token!r} does not keep to {self.owed!r}")
        return healed_start(self.owed[len(token) :], self.trie)

    def _fits(self, token: bytes) -> bool:
        return bool(token) and (token.startswith(self.owed) or self.owed.startswith(token))


def healed_start(owed: bytes, trie: ByteTrie) -> Constraint | None:
    """Return the constraint of a prompt that `owed` was dropped from; None: any token may come."""
    return Constraint(owed, trie) if owed else None


def _successor(start: bytes) -> bytes:
    """Return the least bytes above all that begin with `start`; empty if there are none."""
    stem = start.rstrip(b"\xff")
    return stem[:-1] + bytes([stem[-1] + 1]) if stem else b""
