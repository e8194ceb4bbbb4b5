"""An n-gram pool: known texts as token ids, indexed to draft the next tokens. Knows no torch."""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice

import numpy as np

from engine.drafting.acceptance import AcceptanceTable
from engine.drafting.pool.chains import CONTEXT, SEPARATOR
from engine.drafting.pool.expansion import prior_acceptance
from engine.drafting.pool.token_log import Continuation, TokenLog, Wanted
from engine.drafting.tree import DEEPEST, Draft, Source
from engine.errors import ForegramError

MOST_REMEMBERED = 1 << 13  # tokens of completions; with twice as many, a host grew 5.1 % in 25 min


class PoolFullError(ForegramError):
    """A text does not fit beside those that must stay; only drafting loses a little."""

    code = "pool_full"


@dataclass(slots=True, eq=False)
class PoolDocument:
    """A text in slots `low` to `high` of the log, behind a separator; `name` is the caller's."""

    name: str
    source: Source
    low: int = 0
    high: int = 0

    @property
    def num_tokens(self) -> int:
        """Slots of the text."""
        return self.high - self.low


class NgramPool:
    """All text known to the engine. The same calls give the same drafts; not thread-safe."""

    def __init__(
        self, capacity: int, vocab_size: int, *, acceptance: AcceptanceTable | None = None
    ) -> None:
        """Hold `capacity` tokens; `acceptance`, which may learn, makes matches probabilities."""
        self.acceptance = acceptance or AcceptanceTable(prior_acceptance())
        self._log = TokenLog(capacity, vocab_size)
        self._vocab_size = vocab_size
        self._documents: dict[PoolDocument, None] = {}  # a set, as they lie in the log
        self._num_tokens = Counter[Source]()  # of the documents
        self._has_savepoint = False

    def __len__(self) -> int:
        """Slots in use, dead ones included."""
        return self._log.length

    @property
    def num_bytes(self) -> int:
        """Memory of what is in use."""
        return self._log.num_bytes

    @property
    def wasteful(self) -> bool:
        """True when a third of the log is dead: `compact` in a quiet moment."""
        return 2 * len(self) > 3 * self._num_tokens.total() + (1 << 12)

    def add(self, ids: Sequence[int] | np.ndarray, source: Source, name: str = "") -> PoolDocument:
        """Append a document, which drafts find first from then on. Raises PoolFullError."""
        content = self._checked(ids)
        self._make_room(content.size + 1)
        document = PoolDocument(name, source)
        self._write(document, content)
        self._documents[document] = None
        self._num_tokens[source] += content.size
        if source is Source.PREVIOUS_COMPLETION:
            self._forget_oldest()
        return document

    def ids_of(self, document: PoolDocument) -> np.ndarray:
        """The int32 tokens of a document."""
        ids: np.ndarray = self._log.tokens[document.low : document.high].copy()
        return ids

    def remove(self, document: PoolDocument) -> None:
        """Forget a document."""
        del self._documents[document]
        self._num_tokens[document.source] -= document.num_tokens
        self._log.sources[document.low : document.high] = Source.DEAD

    def remove_all(self, source: Source, names: Collection[str] | None = None) -> None:
        """Forget the documents of a source: those of these names, or all of them."""
        for document in list(self._documents):
            if document.source is source and (names is None or document.name in names):
                self.remove(document)

    def extend(self, ids: Sequence[int] | np.ndarray) -> None:
        """Let generated tokens that fit follow the newest document until the savepoint ends."""
        content = self._checked(ids)
        if content.size <= self._log.free:
            self._log.write(content, Source.GENERATED)

    def draft(
        self, context_ids: Sequence[int] | np.ndarray, nodes: int, depth: int = DEEPEST
    ) -> Draft:
        """The likeliest `nodes` tokens after a context, at most `depth` deep, as a tree, best first."""
        return self._log.draft(self._find(context_ids), nodes, depth, self.acceptance)

    def continuations(
        self,
        context_ids: Sequence[int] | np.ndarray,
        num_tokens: int,
        wanted: Wanted | None = None,
    ) -> list[Continuation]:
        """Return `num_tokens` behind each occurrence of the context that is `wanted`."""
        return self._log.continuations(self._find(context_ids), num_tokens, wanted)

    def draft_from(self, paths: Sequence[Continuation], nodes: int) -> Draft:
        """The likeliest `nodes` tokens of continuations that the caller changed, as a tree."""
        return self._log.draft_from(paths, nodes, self.acceptance)

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        """At the end, take back all that was added meanwhile; removed documents stay removed."""
        kept = len(self)
        self._has_savepoint = True
        try:
            yield
        finally:
            self._has_savepoint = False
            self._log.take_back(kept)
            while self._documents and next(reversed(self._documents)).low > kept:
                document, _ = self._documents.popitem()
                self._num_tokens[document.source] -= document.num_tokens

    def compact(self) -> None:
        """Drop dead tokens, which takes 80 ms a million. Never within a savepoint."""
        texts = [*map(self.ids_of, self._documents)]
        self._log.clear()
        for document, text in zip(self._documents, texts, strict=True):
            self._write(document, text)

    def _write(self, document: PoolDocument, content: np.ndarray) -> None:
        self._log.write([SEPARATOR], Source.DEAD)
        document.low = self._log.write(content, document.source)
        document.high = len(self)

    def _find(self, context_ids: Sequence[int] | np.ndarray) -> int:
        return self._log.find(np.asarray(context_ids[-CONTEXT:], np.int32))

    def _checked(self, ids: Sequence[int] | np.ndarray) -> np.ndarray:
        content = np.asarray(ids, np.int32)
        if content.size and not 0 <= content.min() <= content.max() < self._vocab_size:
            raise ValueError("a token id is outside the vocabulary")
        return content

    def _forget_oldest(self) -> None:
        """Forget completions beyond their share; one that is larger alone stays."""
        while self._num_tokens[Source.PREVIOUS_COMPLETION] > MOST_REMEMBERED:
            completions = (
                one for one in self._documents if one.source is Source.PREVIOUS_COMPLETION
            )
            oldest, *others = islice(completions, 2)
            if not others:
                break
            self.remove(oldest)

    def _make_room(self, num_slots: int) -> None:
        if self._log.free >= num_slots:
            return
        if self._has_savepoint:
            raise PoolFullError("the pool is full while a completion is under way")
        self.compact()
        if self._log.free < num_slots:
            raise PoolFullError(f"{num_slots} tokens do not fit into the pool")
