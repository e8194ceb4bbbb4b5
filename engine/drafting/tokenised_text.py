"""A text that is edited, and its tokens: an edit tokenises a few lines, not the whole text.

A text is tokenised in blocks, and an edit tokenises the blocks around it. Whether a tokenizer allows
that is tried on a text's first lines; if not, every edit tokenises all of it.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate

import numpy as np

from engine.common_start import common_end, common_start
from engine.text_blocks import Encode, allows_blocks, split_blocks

_TRIED_CHARS = 4096


class TokenisedText:
    """A text in blocks, at least one, with the tokens int32 of each."""

    def __init__(self, text: str, encode: Encode) -> None:
        """Tokenise a text; `encode` takes any text and adds no special tokens."""
        self.text = text
        self._encode = encode
        self._in_blocks = allows_blocks(text[:_TRIED_CHARS], encode)
        blocks = self._blocks(text)
        self._ids = _encoded(blocks, encode)
        self._lens = [len(block) for block in blocks]  # in characters

    @property
    def token_ids(self) -> np.ndarray:
        """All tokens, int32."""
        return np.concatenate(self._ids)

    @property
    def longest_block(self) -> int:
        """Characters of the longest block, of which an edit tokenises all."""
        return max(self._lens)

    def become(self, text: str) -> None:
        """Become another text."""
        former = self.text
        start = common_start(former, text)
        end = len(former) - common_end(former[start:], text[start:])
        ends, grown = list(accumulate(self._lens)), len(text) - len(former)
        last_block = len(ends) - 1
        # The block before keeps its first line whatever happens behind it: a safe place to begin.
        first = max(min(bisect_right(ends, start), last_block) - 1, 0)
        last = min(bisect_left(ends, end), last_block)
        offset = ends[first] - self._lens[first]
        while last < last_block and not text[offset : ends[last] + grown].endswith("\n"):
            last += 1
        blocks = self._blocks(text[offset : ends[last] + grown])
        # A key seldom changes the block before its own.
        kept = int(blocks[0] == former[offset : ends[first]])
        self._ids[first + kept : last + 1] = _encoded(blocks[kept:], self._encode)
        self._lens[first : last + 1] = [len(block) for block in blocks]
        self.text = text

    def _blocks(self, text: str) -> list[str]:
        return split_blocks(text) if self._in_blocks else [text]


def _encoded(blocks: Sequence[str], encode: Encode) -> list[np.ndarray]:
    return [np.array(encode(block), np.int32) for block in blocks]
