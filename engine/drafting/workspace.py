"""Open documents: text goes in with every keystroke, the pool gets the few tokens that change.

A text is tokenised in blocks. A block begins with a line that is not blank, for there tokenizers
that split text before they merge it always split: blank lines and line ends may join into one
token, but no line end joins the word behind it. An edit tokenises the blocks around it, and tells
the pool where old and new tokens differ. Whether a tokenizer keeps to this is looked at when a text
is opened; if not, every edit tokenises the whole text.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from engine.common_start import common_start
from engine.drafting.pool import DocumentId, NgramPool
from engine.drafting.tree import Source

Encode = Callable[[str], Sequence[int]]
# Blank lines before the first line, a line, its end, and the blank lines behind it.
_BLOCK = re.compile(r"(?:[^\S\n]*\n)*[^\n]*(?:\n(?:[^\S\n]*\n)*|\Z)")


class Splice(NamedTuple):
    """Tokens `start` to `end` become `ids` int32."""

    start: int
    end: int
    ids: np.ndarray


@dataclass(slots=True)
class TokenisedText:
    """A text in blocks, at least one, and the tokens int32 of each."""

    encode: Encode
    blocks: list[str]
    ids: list[np.ndarray]
    char_lens: np.ndarray  # int64 [blocks]
    token_lens: np.ndarray  # int64 [blocks]
    is_whole: bool  # the tokenizer does not allow blocks

    @classmethod
    def of(cls, text: str, encode: Encode) -> Self:
        """Tokenise a text, in blocks if that makes no difference."""
        whole = np.array(encode(text), np.int32)
        blocks = split_blocks(text)
        ids = _encoded(blocks, encode)
        is_whole = not np.array_equal(np.concatenate(ids), whole)
        if is_whole:
            blocks, ids = [text], [whole]
        return cls(encode, blocks, ids, _lens(blocks), _lens(ids), is_whole)

    @property
    def token_ids(self) -> np.ndarray:
        """All tokens, int32."""
        return np.concatenate(self.ids)

    def change(self, start: int, end: int, text: str) -> Splice:
        """Replace the characters `start` to `end`; return what that does to the tokens.

        Raises ValueError for characters that are not there.
        """
        ends = np.cumsum(self.char_lens)
        if not 0 <= start <= end <= ends[-1]:
            raise ValueError(f"{start} to {end} is no range of {ends[-1]} characters")
        last_block = len(self.blocks) - 1
        # The block before keeps its first line whatever happens behind it: a safe place to begin.
        first = max(min(int(np.searchsorted(ends, start, "right")), last_block) - 1, 0)
        last = min(int(np.searchsorted(ends, end, "left")), last_block)
        offset = int(ends[first] - self.char_lens[first])
        region = "".join(self.blocks[first : last + 1])
        region = region[: start - offset] + text + region[end - offset :]
        while last < last_block and not region.endswith("\n"):
            last += 1
            region += self.blocks[last]
        return self._replace(first, last + 1, region)

    def _replace(self, first: int, end: int, region: str) -> Splice:
        """Replace the blocks `first` to `end` by a text."""
        blocks = [region] if self.is_whole else split_blocks(region)
        ids = _encoded(blocks, self.encode)
        start = int(self.token_lens[:first].sum())
        splice = _difference(np.concatenate(self.ids[first:end]), np.concatenate(ids), start)
        self.blocks[first:end], self.ids[first:end] = blocks, ids
        self.char_lens = _spliced(self.char_lens, first, end, _lens(blocks))
        self.token_lens = _spliced(self.token_lens, first, end, _lens(ids))
        return splice


class Workspace:
    """Keeps documents of a pool equal to texts that are edited. Positions count characters."""

    def __init__(self, pool: NgramPool, encode: Encode) -> None:
        """Feed `pool`; `encode` takes any text and adds no special tokens."""
        self._pool = pool
        self._encode = encode
        self._texts: dict[str, TokenisedText] = {}
        self._documents: dict[str, DocumentId] = {}

    def open(self, path: str, text: str, source: Source = Source.OPEN_BUFFER) -> DocumentId:
        """Add a text, the newest from now on; one that is open under this path is replaced."""
        if path in self._texts:
            self.close(path)
        self._texts[path] = TokenisedText.of(text, self._encode)
        self._documents[path] = self._pool.add(self._texts[path].token_ids, source, path)
        return self._documents[path]

    def change(self, path: str, start: int, end: int, text: str) -> None:
        """Replace the characters `start` to `end`. Raises ValueError where there are none."""
        splice = self._open_text(path).change(start, end, text)
        self._pool.edit(self._documents[path], *splice)

    def replace(self, path: str, text: str) -> None:
        """Make an open text another one by one change. Raises ValueError where nothing is open."""
        former = self.text(path)
        if former == text:
            return
        start = common_start(former, text)
        shorter = min(len(former), len(text)) - start
        tail = common_start(former[::-1][:shorter], text[::-1][:shorter])
        self.change(path, start, len(former) - tail, text[start : len(text) - tail])

    def close(self, path: str) -> None:
        """Forget a text. Raises ValueError for one that is not open."""
        self._open_text(path)
        del self._texts[path]
        self._pool.remove(self._documents.pop(path))

    def token_ids(self, path: str) -> np.ndarray:
        """The tokens of a text, int32: what tokenising the whole of it gives."""
        return self._open_text(path).token_ids

    def text(self, path: str) -> str:
        """The text as it is now."""
        return "".join(self._open_text(path).blocks)

    def tidy(self) -> None:
        """Compact the pool if that is due; for a moment in which nobody waits."""
        if self._pool.wasteful:
            self._pool.compact()

    def _open_text(self, path: str) -> TokenisedText:
        if path not in self._texts:
            raise ValueError(f"{path} is not open")
        return self._texts[path]


def split_blocks(text: str) -> list[str]:
    """Cut a text before every line that is not blank, but the first; at least one block."""
    return [block for block in _BLOCK.findall(text) if block] or [""]


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
