"""Finds windows of other files that read like the text at a cursor: BM25 over names and parts."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from heapq import nlargest
from itertools import islice
from math import fsum, log

from engine.text.names import names_in
from lsp_server.repository.cursor_view import CursorView
from lsp_server.repository.source_text import family_of, words_in, words_of_name
from lsp_server.repository.store import Excerpt, Store

_K1, _B = 1.2, 0.75  # BM25's usual constants
_PATH_WEIGHT = 3.0  # of a word of the file's path, as in Zed's search; a near name has at most 1
_EDIT_WEIGHT = 0.5  # as much as a name four lines away
_MOST_WORDS = 24  # words looked up for one cursor, a query each
_COMMON = 256  # a word in more chunks than this says little
_MOST_KEPT = 2_048  # words whose chunks stay in memory
_READ = 8  # chunks that are scored in full, twice as many as are shown
_AVERAGE_NAMES = 120  # names in a chunk of average length
_LEAST_SHARE = 0.12  # share of the highest possible score that a chunk must reach
_MOST, _MOST_OF_FILE = 4, 3  # chunks shown in all, as by Copilot, and of one file, as by Zed


class ChunkSearch:
    """Asks an index and caches the chunks of each word, as most words recur in later questions."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._num_chunks = 0
        self._chunks_with = lru_cache(_MOST_KEPT)(self._find_chunks)

    def best(self, view: CursorView) -> list[Excerpt]:
        """Return the chunks that fit a cursor best, the best first. Open files are left out."""
        worths, candidates = self._candidates(_weights(view))
        most = fsum(worths.values()) * (_K1 + 1)  # fsum: the same in any order
        read = islice(self._read(candidates, view), _READ)
        scored = sorted(((_score(worths, one.text), one) for one in read), key=lambda one: -one[0])
        of_file: Counter[str] = Counter()
        chosen = []
        for score, chunk in scored:
            of_file[chunk.path] += 1
            if of_file[chunk.path] <= _MOST_OF_FILE:
                chosen.append((score, chunk))
        return [chunk for score, chunk in chosen[:_MOST] if score >= _LEAST_SHARE * most]

    def _read(self, candidates: Sequence[int], view: CursorView) -> Iterator[Excerpt]:
        family = family_of(view.path)
        for number in candidates:
            chunk = self._store.chunk(number, family)
            if chunk is not None and chunk.path != view.path and chunk.path not in view.opened:
                yield chunk

    def _candidates(self, weights: Mapping[str, float]) -> tuple[Mapping[str, float], list[int]]:
        """Return each word's worth, and the chunks that hold most of it, the best first."""
        if (num_chunks := self._store.num_chunks) != self._num_chunks:
            self._num_chunks = num_chunks
            self._chunks_with.cache_clear()
        worths: dict[str, float] = {}
        scores: dict[int, float] = {}
        for word, weight in sorted(weights.items(), key=lambda one: -one[1])[:_MOST_WORDS]:
            if chunks := self._chunks_with(word):
                worths[word] = worth = weight * log(1 + num_chunks / (len(chunks) + 0.5))
                for chunk in chunks:
                    scores[chunk] = scores.get(chunk, 0.0) + worth
        return worths, nlargest(8 * _READ, scores, key=scores.__getitem__)

    def _find_chunks(self, word: str) -> Sequence[int]:
        """Return the chunks with a word; none if it is so common that it says nothing."""
        found = self._store.chunks_with(word, _COMMON + 1)
        return found if len(found) <= min(_COMMON, self._num_chunks // 4 + 2) else ()


def _weights(view: CursorView) -> Mapping[str, float]:
    weights: dict[str, float] = {}
    for name, weight in view.weights.items():
        for word in words_of_name(name):
            weights[word] = max(weights.get(word, 0.0), weight)
    for word in {word for line in view.edits for word in words_in(line)}:
        weights[word] = weights.get(word, 0.0) + _EDIT_WEIGHT
    for word in words_in(view.path.rpartition(".")[0]):
        weights[word] = weights.get(word, 0.0) + _PATH_WEIGHT
    return weights


def _score(worths: Mapping[str, float], text: str) -> float:
    """Return the BM25 score; `worths` already include each word's rarity."""
    names = names_in(text)
    counts = Counter(word for name in names for word in words_of_name(name) if word in worths)
    length = _K1 * (1 - _B + _B * len(names) / _AVERAGE_NAMES)
    return sum(
        worths[word] * count * (_K1 + 1) / (count + length) for word, count in counts.items()
    )
