"""Which windows of other files read like the text at a cursor: BM25 over names and their parts.

The index finds chunks that hold the rare words; the best of them are read and scored in full.
"""

from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import nlargest
from itertools import islice
from math import log
from typing import NamedTuple

from engine.names import names_in
from lsp_server.repository.cursor_view import CursorView
from lsp_server.repository.source_text import family_of, words_in, words_of_name
from lsp_server.repository.store import Store, TextWindow

_K1, _B = 1.2, 0.75
_PATH_WEIGHT = 3.0
_EDIT_WEIGHT = 0.5  # that of a line four lines away
_MOST_WORDS = 24  # that are looked up
_COMMON = 256  # chunks that hold a word; a more frequent one says little
_MOST_KEPT = 2_048  # words whose chunks stay in memory
_READ = 8  # chunks that are scored in full
_AVERAGE_NAMES = 120  # in a chunk
_MOST, _MOST_OF_FILE = 4, 3


class FoundChunk(NamedTuple):
    """How well a chunk fits: 1 would be one with all words of the question, many times."""

    chunk: TextWindow
    share: float


@dataclass(slots=True)
class WordLookup:
    """Which chunks hold a word: while somebody types, one question asks for most words of the last.

    What is kept holds until the index has other chunks; one that is gone by then is not read.
    """

    store: Store
    num_chunks: int = 0
    _kept: OrderedDict[str, Sequence[int]] = field(default_factory=OrderedDict)

    def begin(self) -> None:
        """Look whether the index is as it was."""
        if (num_chunks := self.store.num_chunks) != self.num_chunks:
            self.num_chunks = num_chunks
            self._kept.clear()

    def chunks(self, word: str) -> Sequence[int]:
        """The chunks with a word; none where these are so many that they say nothing."""
        found = self._kept.get(word)
        if found is None:
            found = self.store.chunks_with(word, _COMMON + 1)
            if len(found) > min(_COMMON, self.num_chunks // 4 + 2):
                found = ()
            self._kept[word] = found
            if len(self._kept) > _MOST_KEPT:
                self._kept.popitem(last=False)
        self._kept.move_to_end(word)
        return found


@dataclass(frozen=True)
class ChunkSearch:
    """Asks an index about one cursor; files in `excluded` are not shown."""

    lookup: WordLookup
    view: CursorView
    excluded: frozenset[str]
    edits: Sequence[str] = ()  # lines that were changed last, in any file

    def best(self) -> list[FoundChunk]:
        """The chunks that fit best, the best first."""
        worths, candidates = self._candidates()
        if not candidates:
            return []
        most = sum(worths.values()) * (_K1 + 1)
        read = islice(self._read(candidates), _READ)
        found = [FoundChunk(chunk, _score(worths, chunk.text) / most) for chunk in read]
        return _limited(sorted(found, key=lambda one: -one.share))

    def _read(self, candidates: Iterable[int]) -> Iterator[TextWindow]:
        family = family_of(self.view.path)
        for number in candidates:
            chunk = self.lookup.store.chunk(number, family)
            if chunk is not None and chunk.path not in self.excluded:
                yield chunk

    def _candidates(self) -> tuple[Mapping[str, float], list[int]]:
        """What each word is worth, and the chunks that hold most of that, the best first."""
        self.lookup.begin()
        num_chunks = max(self.lookup.num_chunks, 1)
        worths: dict[str, float] = {}
        scores: dict[int, float] = {}
        for word, weight in sorted(self._weights().items(), key=lambda one: -one[1])[:_MOST_WORDS]:
            if chunks := self.lookup.chunks(word):
                worths[word] = worth = weight * log(1 + num_chunks / (len(chunks) + 0.5))
                for chunk in chunks:
                    scores[chunk] = scores.get(chunk, 0.0) + worth
        return worths, nlargest(8 * _READ, scores, key=scores.__getitem__)

    def _weights(self) -> Mapping[str, float]:
        weights: dict[str, float] = {}
        for name, weight in self.view.weights.items():
            for word in words_of_name(name):
                weights[word] = max(weights.get(word, 0.0), weight)
        for word in {word for line in self.edits for word in words_in(line)}:
            weights[word] = weights.get(word, 0.0) + _EDIT_WEIGHT
        for word in words_in(self.view.path.rpartition(".")[0]):
            weights[word] = weights.get(word, 0.0) + _PATH_WEIGHT
        return weights


def _score(worths: Mapping[str, float], text: str) -> float:
    """BM25, the words' worths holding their rarity."""
    names = names_in(text)
    counts: dict[str, int] = {}
    for name in names:
        for word in words_of_name(name):
            if word in worths:
                counts[word] = counts.get(word, 0) + 1
    length = _K1 * (1 - _B + _B * len(names) / _AVERAGE_NAMES)
    return sum(
        worths[word] * count * (_K1 + 1) / (count + length) for word, count in counts.items()
    )


def _limited(found: Iterable[FoundChunk]) -> list[FoundChunk]:
    """The first few, and not all of one file."""
    of_file: Counter[str] = Counter()
    chosen = []
    for one in found:
        of_file[one.chunk.path] += 1
        if of_file[one.chunk.path] <= _MOST_OF_FILE:
            chosen.append(one)
    return chosen[:_MOST]
