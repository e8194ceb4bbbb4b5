"""Pieces of the open buffers that share most names with the text around the cursor.

Copilot's way without embeddings: windows of lines, compared by the Jaccard index of their
identifiers. The model sees them before the file, so it writes what this project writes.
"""

import re
from array import array
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, chain

from engine.request import Buffer, CompletionRequest, Snippet

_STEP, _BLOCKS = 8, 4  # lines from one window to the next; a window is so many steps long
_MOST_CACHED = 256  # texts whose windows are kept between two requests
_MOST_CACHED_CHARS = 500_000  # of each
_AROUND_LINES = 16  # before and behind the cursor
_ANCHOR_LINES = 8  # what stands before is looked at anew after so many lines
_LINE = re.compile(r"[^\n]*\n|[^\n]+")  # a form feed or U+2028 ends no line of code
_WORD = re.compile(r"[^\W\d]\w{2,}")


def related_snippets(request: CompletionRequest) -> list[Snippet]:
    """Return the best window of every buffer that shares a name with the cursor, best first."""
    around = _names_around(request.prefix, request.suffix)
    best = [window for buffer in request.open_buffers if (window := _best(buffer, around))]
    best.sort(key=lambda scored: -scored.score)
    return [scored.snippet for scored in best]


def _names_around(prefix: str, suffix: str) -> frozenset[str]:
    """Names near the cursor, but those of its line and of the few lines since the last anchor.

    So the snippets, and the prompt that begins with them, stay while the user types.
    """
    before = prefix.split("\n")[:-1]
    anchor = len(before) // _ANCHOR_LINES * _ANCHOR_LINES or len(before)
    before = before[max(0, anchor - _AROUND_LINES) : anchor]
    behind = suffix.split("\n")[1 : 1 + _AROUND_LINES]
    return frozenset(_WORD.findall("\n".join(before + behind)))


@dataclass(frozen=True, slots=True)
class _Scored:
    score: float
    snippet: Snippet


def _best(buffer: Buffer, around: frozenset[str]) -> _Scored | None:
    is_large = len(buffer.text) > _MOST_CACHED_CHARS
    windows = _index(buffer.text) if is_large else _cached_index(buffer.text)
    scores = windows.scores(around)
    best = max(range(len(scores)), key=scores.__getitem__)
    if not scores[best]:
        return None
    return _Scored(scores[best], Snippet(buffer.path, windows.text(best, buffer.text)))


@dataclass(frozen=True, slots=True)
class _Windows:
    """The windows of a text by their words.

    One stands on `_BLOCKS` blocks of `_STEP` lines and begins a block after the one before. The
    index takes a few bytes for each character, a fraction of what a set for each window takes.
    """

    # In quotes, as arrays are generic only from Python 3.12 on.
    cuts: "array[int]"  # where blocks begin, and the end of the text
    num_words: "array[int]"  # of each window
    of_word: "dict[str, array[int]]"  # windows that hold a word, ascending

    def text(self, window: int, whole: str) -> str:
        """The lines of a window; `whole` is the text of all."""
        end = min(window + _BLOCKS, len(self.cuts) - 1)
        return whole[self.cuts[window] : self.cuts[end]]

    def scores(self, around: frozenset[str]) -> list[float]:
        """The Jaccard index of every window's words and those around the cursor."""
        shared = [0] * len(self.num_words)
        for word in around:
            for window in self.of_word.get(word, ()):
                shared[window] += 1
        return [
            both / max(1, len(around) + num_words - both)
            for both, num_words in zip(shared, self.num_words, strict=True)
        ]


def _index(text: str) -> _Windows:
    blocks = _blocks(text)
    cuts = array("I", accumulate(map(len, blocks), initial=0))
    num_windows = max(1, len(blocks) - _BLOCKS + 1)
    of_word: dict[str, array[int]] = {}
    for number, block in enumerate(blocks):
        for word in set(_WORD.findall(block)):
            windows = of_word.setdefault(word, array("I"))
            first = max(0, number - _BLOCKS + 1, windows[-1] + 1 if windows else 0)
            windows.extend(range(first, min(number + 1, num_windows)))
    num_words = array("I", bytes(array("I").itemsize * num_windows))
    for window in chain.from_iterable(of_word.values()):
        num_words[window] += 1
    return _Windows(cuts, num_words, of_word)


# A buffer is one object from one edit to the next, so its text is hashed once.
_cached_index = lru_cache(maxsize=_MOST_CACHED)(_index)


def _blocks(text: str) -> list[str]:
    lines = _LINE.findall(text)
    return ["".join(lines[start : start + _STEP]) for start in range(0, len(lines), _STEP)]
