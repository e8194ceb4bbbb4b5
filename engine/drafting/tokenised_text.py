"""A text that is edited, and its tokens: an edit tokenises a few lines, not the whole text.

A text is tokenised in blocks. A block begins with a line that is not blank, for there tokenizers
that split text before they merge it always split: blank lines and line ends may join into one
token, but no line end joins the word behind it. An edit tokenises the blocks around it. Whether a
tokenizer keeps to this is tried on a text's first lines; if not, every edit tokenises all of it.
"""

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from engine.common_start import common_end, common_start

Encode = Callable[[str], Sequence[int]]
_TRIED_CHARS = 4096
# Blank lines before the first line, a line, its end, and the blank lines behind it.
_BLOCK = re.compile(r"(?:[^\S\n]*\n)*[^\n]*(?:\n(?:[^\S\n]*\n)*|\Z)")


class Splice(NamedTuple):
    """Tokens `start` to `end` become `ids` int32."""

    start: int
    end: int
    ids: np.ndarray


class TokenisedText:
    """A text in blocks, at least one, with the tokens int32 of each."""

    def __init__(self, text: str, encode: Encode) -> None:
        """Tokenise a text; `encode` takes any text and adds no special tokens."""
        self.text = text
        self._encode = encode
        self._in_blocks = _allows_blocks(text[:_TRIED_CHARS], encode)
        blocks = self._blocks(text)
        self._ids = _encoded(blocks, encode)
        self._char_lens, self._token_lens = _lens(blocks), _lens(self._ids)  # int64 [blocks]

    @property
    def token_ids(self) -> np.ndarray:
        """All tokens, int32."""
        return np.concatenate(self._ids)

    def become(self, text: str) -> Splice:
        """Become another text; return what that does to the tokens."""
        former, self.text = self.text, text
        start = common_start(former, text)
        end = len(former) - common_end(former[start:], text[start:])
        ends, grown = np.cumsum(self._char_lens), len(text) - len(former)
        last_block = len(ends) - 1
        # The block before keeps its first line whatever happens behind it: a safe place to begin.
        first = max(min(int(np.searchsorted(ends, start, "right")), last_block) - 1, 0)
        last = min(int(np.searchsorted(ends, end, "left")), last_block)
        offset = int(ends[first] - self._char_lens[first])
        while last < last_block and not text[offset : int(ends[last]) + grown].endswith("\n"):
            last += 1
        return self._replace(first, last + 1, text[offset : int(ends[last]) + grown])

    def _replace(self, first: int, end: int, region: str) -> Splice:
        """Replace the blocks `first` to `end` by a text."""
        blocks = self._blocks(region)
        ids = _encoded(blocks, self._encode)
        start = int(self._token_lens[:first].sum())
        splice = _difference(np.concatenate(self._ids[first:end]), np.concatenate(ids), start)
        self._ids[first:end] = ids
        self._char_lens = _spliced(self._char_lens, first, end, _lens(blocks))
        self._token_lens = _spliced(self._token_lens, first, end, _lens(ids))
        return splice

    def _blocks(self, text: str) -> list[str]:
        return split_blocks(text) if self._in_blocks else [text]


def split_blocks(text: str) -> list[str]:
    """Cut a text before every line that is not blank, but the first; at least one block."""
    return [block for block in _BLOCK.findall(text) if block] or [""]


def _allows_blocks(text: str, encode: Encode) -> bool:
    return np.array_equal(np.concatenate(_encoded(split_blocks(text), encode)), encode(text))


def _encoded(blocks: Sequence[str], encode: Encode) -> list[np.ndarray]:
    return [np.array(encode(block), np.int32) for block in blocks]


def _lens(parts: Sequence[str] | Sequence[np.ndarray]) -> np.ndarray:
    return np.array([len(part) for part in parts], np.int64)


def _spliced(values: np.ndarray, first: int, end: int, new: np.ndarray) -> np.ndarray:
    return np.concatenate([values[:first], new, values[end:]])


def _difference(old: np.ndarray, new: np.ndarray, start: int) -> Splice:
    """What turns `old` into `new`, without what they begin and end with alike."""
    shorter = min(old.size, new.size)
    head = _common(old[:shorter], new[:shorter])
    rest = shorter - head
    tail = _common(old[::-1][:rest], new[::-1][:rest])
    return Splice(start + head, start + old.size - tail, new[head : new.size - tail])


def _common(one: np.ndarray, other: np.ndarray) -> int:
    """How many values they begin with alike; both have one size."""
    different = np.flatnonzero(one != other)
    return int(different[0]) if different.size else one.size
