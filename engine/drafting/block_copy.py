"""Copies a block of text that the answer mostly repeats.

While the answer follows the block, the block goes on. Once it departs, drafts begin where it may
rejoin: behind text that it wrote last, or at a line that follows an inserted or a replaced one. A
name or an indentation that it replaced is replaced in the rest of the block, too.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from enum import IntEnum
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from engine.common_start import common_end
from engine.drafting.tree import Draft, Source
from engine.model.token_tree import MAX_ROWS
from engine.model.tokenizer import Tokenizer

_WINDOW = 1024  # bytes of the block in which the answer may rejoin it, and a change is repeated
_STEADY = 4  # tokens copied in a row, after which an earlier departure is over
_SURE = 3.0  # score of a match that ends a departure: same bytes without blanks, less a part of
_JUMP = 1 / 24  # those jumped over
_MATCHES = 3  # places tried at once
_WORD = re.compile(rb"\w+")
_TAIL = re.compile(rb"(?:\w+|[^\w\s])\s*\Z")  # the last word or sign
_INDENT = re.compile(rb"[ \t]*")


class _Kind(IntEnum):
    """How a place in the block was found."""

    FOLLOWED = 0
    REJOINED = 1  # a few tokens ago
    MATCHED = 2  # 2 to 4, by the number of same bytes
    INSERTED_LINE = 5
    REPLACED_LINE = 6


_DEPTHS = 8  # rates of the first tokens of a path; tokens further down share some
_DEPTH_OF = np.repeat(np.arange(_DEPTHS, dtype=np.int32), [1, 1, 1, 2, 4, 8, 16, MAX_ROWS])
# Until the acceptance table knows better: what was accepted of each kind on recorded edits.
COPY_PRIOR = np.array(
    [
        [0.97] * _DEPTHS,
        [0.68, 0.87, 0.88, *[0.95] * 5],
        [0.22, 0.3, 0.85, *[0.9] * 5],
        [0.15, 0.6, 0.6, *[0.9] * 5],
        [0.9, 0.82, 0.85, *[0.93] * 5],
        [0.2, 0.2, 0.4, *[0.9] * 5],
        [0.45, 0.36, 0.88, *[0.97] * 5],
    ]
).ravel()
_CHAIN = np.arange(-1, MAX_ROWS - 2, dtype=np.int32)
_SOURCE = np.full(MAX_ROWS - 1, Source.COPY, np.uint8)


class _Place(NamedTuple):
    token: int  # of the block, which may come next
    kind: int


class _Match(NamedTuple):
    score: float
    token: int  # of the block, behind the same text
    same: int  # bytes


class BlockCopy:
    """Copies one block in one answer."""

    def __init__(
        self,
        block: str,
        tokenizer: Tokenizer,
        probs: np.ndarray = COPY_PRIOR,  # float64 [cells] of the table, read at every draft
    ) -> None:
        self._tokenizer, self._probs = tokenizer, probs
        self._hold(tokenizer.encode(block))
        self._at = 0  # the block's token that follows
        self._run = _STEADY  # tokens copied in a row; -1: the answer has departed
        self._sure = 0  # the byte up to which the block was surely followed
        self._lead = b""  # the answer's line up to there
        self._written = b""  # since then, the last `_WINDOW` bytes
        self._places: list[_Place] = []  # where a departed answer may rejoin

    @property
    def _line(self) -> bytes:
        """The answer's last line."""
        return (self._lead + self._written).rpartition(b"\n")[2]

    def _hold(self, ids: Sequence[int]) -> None:
        texts = [self._tokenizer.vocabulary.bytes_of(one) for one in ids]
        self._text, self._ids = b"".join(texts), np.array(ids, np.int32)
        self._starts: list[int] = [0, *accumulate(map(len, texts))]  # of each token, and the end

    def drafts(self, nodes: int) -> Iterator[Draft]:
        """Yield the block's next tokens, at most `nodes`, from each place that the answer may be at."""
        if self._run >= 0:
            kind = _Kind.FOLLOWED if self._run >= _STEADY else _Kind.REJOINED
            yield self._path(_Place(self._at, kind), nodes)
        else:
            for place in self._places:
                yield self._path(place, nodes)

    def _path(self, place: _Place, nodes: int) -> Draft:
        tokens = self._ids[place.token : place.token + nodes]
        cells = place.kind * _DEPTHS + _DEPTH_OF[: len(tokens)]
        probs = self._probs[cells].cumprod()
        return Draft(tokens, _CHAIN[: len(tokens)], probs, _SOURCE[: len(tokens)], cells)

    def update(self, token_ids: Sequence[int]) -> None:
        """Follow the answer by the tokens that it has written."""
        for token in token_ids:
            text = self._tokenizer.vocabulary.bytes_of(token)
            self._written = (self._written + text)[-_WINDOW:]
            if self._run >= 0 and self._at < len(self._ids) and self._ids[self._at] == token:
                self._at, self._run = self._at + 1, self._run + 1
            else:
                self._run = -1
            if self._run >= _STEADY:
                self._lead, self._written = self._line, b""
                self._sure = self._starts[self._at]
        if self._run < 0:
            self._find()

    def _find(self) -> None:
        """Find where the answer has rejoined the block, or may do so next."""
        matches = sorted(self._matches(), reverse=True)[:_MATCHES]
        if matches and matches[0].score >= _SURE:
            self._at, self._run = matches[0].token, 0
            self._repeat_change(matches[0])
            return
        self._places = [_Place(one.token, _Kind.MATCHED + min(one.same // 4, 2)) for one in matches]
        self._places += self._lines()

    def _matches(self) -> Iterator[_Match]:
        """Yield the places behind the last word or sign that was written."""
        text, written, start = self._text, self._written, self._sure
        if not (tail := _TAIL.search(written)):
            return
        found = text.find(tail[0], start, start + _WINDOW)
        while found >= 0:
            end = found + len(tail[0])
            index = bisect_left(self._starts, end)
            if self._starts[index] == end:
                same = common_end(text[start:end], written)
                solid = len(b"".join(text[end - same : end].split()))
                yield _Match(solid - _JUMP * (end - same - start), index, same)
            found = text.find(tail[0], found + 1, start + _WINDOW)

    def _lines(self) -> Iterator[_Place]:
        """Yield the lines that follow once one was inserted or replaced, behind the indentation."""
        indent = self._line
        if b"\n" not in self._written or indent.strip():
            return
        start = _line_start(self._text, self._sure)
        for kind in (_Kind.INSERTED_LINE, _Kind.REPLACED_LINE):
            end = start + len(indent)
            index = bisect_left(self._starts, end)
            if self._text.startswith(indent, start) and self._starts[index] == end:
                yield _Place(index, kind)
            start = self._text.find(b"\n", start) + 1 or len(self._text)

    def _repeat_change(self, match: _Match) -> None:
        """Change the block behind a match as the answer changed the lines up to it."""
        end = self._starts[match.token]
        old, new = self._text[_line_start(self._text, self._sure) : end], self._lead + self._written
        cut = self._text.find(b"\n", end + _WINDOW) + 1 or len(self._text)
        kept = bisect_left(self._starts, cut)  # the first token that stays
        near = self._text[end : self._starts[kept]]
        changed = _reindented(_renamed(near, old, new), old, new)
        if changed != near:
            # A wrong token where the parts meet costs a draft; 32,000 characters would cost 60 ms.
            ids = self._tokenizer.encode(changed.decode("utf-8", "replace"))
            before, behind = self._ids[: match.token].tolist(), self._ids[kept:].tolist()
            self._hold([*before, *ids, *behind])


def _renamed(text: bytes, old: bytes, new: bytes) -> bytes:
    """Replace a word in `text` if `old` became `new` by replacing that word alone."""
    words, others = _WORD.findall(old), _WORD.findall(new)
    changes = {pair for pair in zip(words, others, strict=False) if pair[0] != pair[1]}
    if len(words) != len(others) or len(changes) != 1:
        return text
    [(word, other)] = changes
    name = re.compile(rb"\b" + word + rb"\b")
    return name.sub(other, text) if name.sub(other, old).split() == new.split() else text


def _reindented(text: bytes, old: bytes, new: bytes) -> bytes:
    """Indent the lines below the first as `new` ends, while they are as deep as the end of `old`.

    Both must end with the same line, but for its indentation.
    """
    before, behind = _indent(old), _indent(new)
    if _last_line(old).lstrip() != _last_line(new).lstrip():
        return text
    first, *lines = text.split(b"\n")
    for place, line in enumerate(lines):
        if line.startswith(before):
            lines[place] = behind + line.removeprefix(before)
        elif line.strip():
            break
    return b"\n".join([first, *lines])


def _indent(text: bytes) -> bytes:
    """The indentation of the last line."""
    found = _INDENT.match(text, _line_start(text, len(text)))
    return found[0] if found else b""


def _last_line(text: bytes) -> bytes:
    return text[_line_start(text, len(text)) :]


def _line_start(text: bytes, end: int) -> int:
    """Where the line begins that `end` is in."""
    return text.rfind(b"\n", 0, end) + 1
