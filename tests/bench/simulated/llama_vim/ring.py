"""Chunks of other places, which precede the file in each request."""

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.bench.simulated.llama_vim.context import PREFIX_LINES, SUFFIX_LINES

_MOST = 16
_CHUNK_LINES = 64
_SCOPE_LINES = 1024
_FEWEST = 3  # lines of a chunk
_SAME, _LIKE_HERE = 0.9, 0.5
_WORD = re.compile(r"\W+")


@dataclass(frozen=True, slots=True)
class RingChunk:
    path: str
    lines: tuple[str, ...]

    @property
    def extra(self) -> dict[str, str]:
        return {"text": "\n".join(self.lines) + "\n", "filename": self.path}


@dataclass(slots=True)
class Ring:
    """The newest chunks, the oldest first. Those in `queued` are read when the person pauses."""

    draw: random.Random
    chunks: list[RingChunk] = field(default_factory=list)
    queued: list[RingChunk] = field(default_factory=list)
    _picked_row: int | None = None

    def enter(self, path: str, lines: Sequence[str], row: int) -> None:
        """Pick a chunk, as a buffer was entered or left with its cursor in `row`."""
        half = _CHUNK_LINES // 2
        self._pick(path, lines[max(0, row - half) : row + half + 1], evicts=True)

    def look_around(self, path: str, lines: Sequence[str], row: int) -> None:
        """Pick chunks beyond the window of a request, if it is far from the last one."""
        if self._picked_row is not None and abs(row - self._picked_row) <= _CHUNK_LINES // 2:
            return
        self._picked_row = row
        far = lines[max(0, row - _SCOPE_LINES) : max(1, row - PREFIX_LINES + 1)]
        self._pick(path, far, evicts=False)
        start = min(len(lines) - 1, row + SUFFIX_LINES)
        self._pick(path, lines[start : start + _CHUNK_LINES + 1], evicts=False)

    def evict_like(self, lines: Sequence[str], row: int) -> None:
        """Before a request, remove chunks that would only repeat the cursor's surroundings."""
        half = _CHUNK_LINES // 2
        here = self._drawn(lines[max(0, row - half) : row + half + 1])
        self.chunks = [one for one in self.chunks if similarity(one.lines, here) <= _LIKE_HERE]

    def update(self) -> bool:
        """Read the next queued chunk; return whether there was one."""
        if not self.queued:
            return False
        self.chunks = [*self.chunks[-(_MOST - 1) :], self.queued.pop(0)]
        return True

    def _pick(self, path: str, text: Sequence[str], *, evicts: bool) -> None:
        if len(text) < _FEWEST:
            return
        lines = tuple(text) if len(text) + 1 < _CHUNK_LINES else self._drawn(text)
        known = [*self.queued, *self.chunks]
        if any(one.lines == lines for one in known):
            return
        same = [one for one in known if similarity(one.lines, lines) > _SAME]
        if same and not evicts:
            return
        self.queued = [one for one in self.queued if one not in same][-(_MOST - 1) :]
        self.chunks = [one for one in self.chunks if one not in same]
        self.queued.append(RingChunk(path, lines))

    def _drawn(self, text: Sequence[str]) -> tuple[str, ...]:
        half = _CHUNK_LINES // 2
        start = self.draw.randint(0, max(0, len(text) - half))
        return tuple(text[start : min(start + half, len(text)) + 1])


def similarity(one: Sequence[str], other: Sequence[str]) -> float:
    """Return twice the words of `other` that `one` has, over the words of both (`s:chunk_sim`)."""
    words, others = _words(one), _words(other)
    if not words and not others:
        return 1.0
    known = set(words)
    return 2 * sum(word in known for word in others) / (len(words) + len(others))


def _words(lines: Sequence[str]) -> list[str]:
    return [word for word in _WORD.split("\n".join(lines)) if word]
