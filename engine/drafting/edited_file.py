"""The edited file in the pool: the text before the cursor and behind it.

Only changed blocks are tokenised again. Each completion adds a part of a long file, nearest first.
Text just before the cursor is added for one completion only, as each key changes its tokens.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import accumulate
from typing import Literal

import numpy as np

from engine.common_start import common_ends
from engine.drafting.pool import NgramPool, PoolDocument, PoolFullError
from engine.drafting.tree import Source
from engine.model.remembered_encoding import Encode, allows_blocks, split_blocks
from engine.request import CompletionRequest

_STEP_CHARS = 25_000  # steps in which the start of the held text moves
_NEW_CHARS = 50_000  # new text of a part that one completion tokenises while others wait
_NEAR_CHARS = 2048  # the near text has one to two times as many, wherever its lines end
_Part = Literal["before", "near", "behind"]
_MOST_CHARS: dict[_Part, int] = {"before": 1_000_000, "behind": 500_000}
_TRIED_CHARS = 4096  # beginning of a text that shows whether the tokenizer allows blocks


class EditedFile:
    """The file of the last request."""

    def __init__(self, pool: NgramPool, encode: Encode) -> None:
        self._pool = pool
        self._encode = encode
        self._path = ""
        self._texts: dict[_Part, TokenisedText] = {}
        self._documents: dict[_Part, PoolDocument] = {}
        self._reach: dict[_Part, int] = {}  # characters of a part to hold

    @contextmanager
    def completed(self, request: CompletionRequest, unsettled: str) -> Iterator[None]:
        """Hold the file for a completion, up to `unsettled`: last text, whose tokens may change."""
        prefix = request.prefix
        near = max(0, len(prefix) // _NEAR_CHARS - 1) * _NEAR_CHARS
        if request.path != self._path:
            self.close()
        self._path = request.path
        self._hold("behind", Source.SUFFIX, lambda reach: request.suffix[:reach])
        self._hold("before", Source.EDITED_FILE, lambda reach: prefix[_start(near, reach) : near])
        with self._pool.savepoint():  # its end drops the near text and the generated tokens
            tokens = self._tokens("near", prefix[near:].removesuffix(unsettled))
            with suppress(PoolFullError):
                self._pool.add(tokens, Source.EDITED_FILE, self._path)
            yield

    def close(self) -> None:
        """Forget the file."""
        for document in self._documents.values():
            self._pool.remove(document)
        self._documents.clear()
        self._texts.clear()
        self._reach.clear()

    def forget(self, names: Collection[str]) -> None:
        """Forget the file if its path is one of these."""
        if self._path in names:
            self.close()

    def _hold(self, part: _Part, source: Source, text_within: Callable[[int], str]) -> None:
        """Hold a document of a part, which reaches farther each time; a new text starts over."""
        held, reach = self._texts.get(part), self._reach.get(part, 0)
        if held is None or held.longest_block <= _NEAR_CHARS:  # an edit tokenises all of it
            reach = min(reach + _NEW_CHARS, _MOST_CHARS[part])
        text, former = text_within(reach), held.text if held else ""
        start, end = _changed(former, text)
        if len(text) - len(former) + end - start > 2 * _NEW_CHARS:
            reach = _NEW_CHARS
            text = text_within(reach)
            self._texts.pop(part, None)
        self._reach[part] = reach
        if part in self._documents:
            if former == text:
                return
            self._pool.remove(self._documents.pop(part))
        self._documents[part] = self._pool.add(self._tokens(part, text), source, self._path)

    def _tokens(self, part: _Part, text: str) -> np.ndarray:
        if part in self._texts:
            self._texts[part].become(text)
        else:
            self._texts[part] = TokenisedText(text, self._encode)
        return self._texts[part].token_ids


def _changed(former: str, text: str) -> tuple[int, int]:
    """Start and end of the piece of `former` that `text` replaces; equal for an insertion."""
    if former == text:
        return 0, 0
    start, tail = common_ends(former, text)
    return start, len(former) - tail


def _start(end: int, num_chars: int) -> int:
    """Where at most `num_chars` characters before `end` begin, in steps of `_STEP_CHARS`."""
    return -(-max(0, end - num_chars) // _STEP_CHARS) * _STEP_CHARS


class TokenisedText:
    """A text in blocks, or in one if the tokenizer allows none, with the int32 tokens of each."""

    def __init__(self, text: str, encode: Encode) -> None:
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
        """Characters of the longest block, which an edit tokenises as a whole."""
        return max(self._lens)

    def become(self, text: str) -> None:
        """Change to `text`, tokenising only the blocks around the change."""
        former = self.text
        start, end = _changed(former, text)
        ends, grown = list(accumulate(self._lens)), len(text) - len(former)
        last_block = len(ends) - 1
        # The block before keeps its first line whatever changes behind it, so it is a safe start.
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
