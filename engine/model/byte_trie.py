"""Which tokens can come next when the bytes to come are known: a trie over the vocabulary.

Kept as sorted arrays instead of nodes: a prefix is a range, found by bisection.
"""

from bisect import bisect_left

import numpy as np

from engine.model.vocabulary import Vocabulary


class ByteTrie:
    """The vocabulary's texts in the order of their bytes; special tokens are no texts."""

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


def _successor(start: bytes) -> bytes:
    """Return the least bytes above all that begin with `start`; empty if there are none."""
    stem = start.rstrip(b"\xff")
    return stem[:-1] + bytes([stem[-1] + 1]) if stem else b""
