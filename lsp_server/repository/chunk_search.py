"""Which windows of other files read like the text at a cursor: BM25 over names and their parts.

The index finds chunks that hold the rare words; the best of them are read and scored in full.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from math import log
from typing import NamedTuple

from lsp_server.repository.cursor_view import CursorView, names_in
from lsp_server.repository.languages import family_of
from lsp_server.repository.store import Store, TextWindow
from lsp_server.repository.words import words_in, words_of

_K1, _B = 1.2, 0.75
_PATH_WEIGHT, _EDIT_WEIGHT = 3.0, 2.0
_MOST_WORDS = 32  # that are looked up
_COMMON = 256  # chunks that hold a word; a more frequent one says little
_READ = 10  # chunks that are scored in full
_AVERAGE_NAMES = 120  # in a chunk
_MOST, _MOST_OF_FILE = 4, 3


class FoundChunk(NamedTuple):
    """How well a chunk fits: 1 would be one with all words of the question, many times."""

    chunk: TextWindow
    share: float


@dataclass(frozen=True)
class ChunkSearch:
    """Asks an index about one cursor; files in `excluded` are not shown."""

    store: Store
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
            chunk = self.store.chunk(number, family)
            if chunk is not None and chunk.path not in self.excluded:
                yield chunk

    def _candidates(self) -> tuple[Mapping[str, float], list[int]]:
        """What each word is worth, and the chunks that hold most of that, the best first."""
        worths: dict[str, float] = {}
        scores: Counter[int] = Counter()
        num_chunks = max(self.store.num_chunks, 1)
        for word, weight in sorted(self._weights().items(), key=lambda one: -one[1])[:_MOST_WORDS]:
            chunks = self.store.chunks_with(word, _COMMON + 1)
            if not chunks or len(chunks) > min(_COMMON, num_chunks // 4 + 2):
                continue
            worths[word] = weight * log(1 + num_chunks / (len(chunks) + 0.5))
            for chunk in chunks:
                scores[chunk] += worths[word]  # type: ignore[assignment] # a sum of worths
        return worths, [chunk for chunk, _ in scores.most_common(8 * _READ)]

    def _weights(self) -> Mapping[str, float]:
        weights: Counter[str] = Counter()
        for name, weight in self.view.weights.items():
            for word in words_of([name]):
                weights[word] = max(weights[word], weight)  # type: ignore[assignment]
        for line in self.edits:
            for word in words_in(line):
                weights[word] += _EDIT_WEIGHT  # type: ignore[assignment]
        for word in words_in(self.view.path.rpartition(".")[0]):
            weights[word] += _PATH_WEIGHT  # type: ignore[assignment]
        return weights


def _score(worths: Mapping[str, float], text: str) -> float:
    """BM25, the words' worths holding their rarity."""
    names = Counter(names_in(text))
    counts: Counter[str] = Counter()
    for name, count in names.items():
        for word in words_of([name]):
            counts[word] += count
    num_names = names.total()
    length = _K1 * (1 - _B + _B * num_names / _AVERAGE_NAMES)
    held = ((worth, counts[word]) for word, worth in worths.items() if word in counts)
    return sum(worth * count * (_K1 + 1) / (count + length) for worth, count in held)


def _limited(found: Iterable[FoundChunk]) -> list[FoundChunk]:
    """The first few, and not all of one file."""
    of_file: Counter[str] = Counter()
    chosen = []
    for one in found:
        of_file[one.chunk.path] += 1
        if of_file[one.chunk.path] <= _MOST_OF_FILE:
            chosen.append(one)
    return chosen[:_MOST]
