"""Documents in a token log. While a savepoint is open, every change notes how it is undone."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import count

import numpy as np

from engine.drafting.pool.chains import SEPARATOR
from engine.drafting.pool.documents import DocumentId, Piece, PoolDocument
from engine.drafting.pool.token_log import TokenLog
from engine.drafting.tree import Source


class DocumentLog:
    """Documents by id. Who changes the log does so by the methods here, or to slots just written."""

    def __init__(self, capacity: int, vocab_size: int) -> None:
        self.log = TokenLog(capacity, vocab_size)
        self.documents: dict[DocumentId, PoolDocument] = {}
        self.live = np.zeros(len(Source), np.int64)  # tokens by source of their document
        self.num_savepoints = 0  # that are open
        self._ids = count(1)
        self._undos: list[Callable[[], object]] = []

    def oldest(self, source: Source) -> DocumentId | None:
        """The document of a source that was added first."""
        own = (key for key, document in self.documents.items() if document.source is source)
        return min(own, default=None)

    def add(self, document: PoolDocument) -> DocumentId:
        """Give a document an id that was never used."""
        document_id = DocumentId(next(self._ids))
        self.put(document_id, document)
        return document_id

    def put(self, document_id: DocumentId, document: PoolDocument | None) -> None:
        """Set what an id stands for; None forgets it."""
        self._note(self._place, document_id, self.documents.get(document_id))
        self._place(document_id, document)

    def write(self, ids: np.ndarray | list[int], source: Source) -> int:
        """Append tokens, separators or references; return the first one's slot."""
        self._note(self.log.take_back, self.log.length)
        return self.log.write(ids, source)

    def overwrite(self, slot: int, content: int) -> None:
        """Set the content of a slot that was written before."""
        self._note(self.log.tokens.__setitem__, slot, int(self.log.tokens[slot]))
        self.log.tokens[slot] = content

    def set_source(self, pieces: Sequence[Piece], source: Source) -> None:
        """Set the source of slots; DEAD ones are never drafted."""
        sources = self.log.sources
        for low, high in pieces:
            self._note(sources.__setitem__, slice(low, high), sources[low:high].copy())
            sources[low:high] = source

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        """Undo at the end, newest first, all changes that were made meanwhile."""
        kept = len(self._undos)
        self.num_savepoints += 1
        try:
            yield
        finally:
            self.num_savepoints -= 1
            while len(self._undos) > kept:
                self._undos.pop()()

    def compact(self) -> None:
        """Write all documents anew, in the order of their last edit, without anything dead."""
        if self.num_savepoints:
            raise ValueError("a pool with an open savepoint cannot be compacted")
        order = sorted(self.documents, key=lambda key: self.documents[key].newest_slot)
        texts = [self._content(self.documents[key]) for key in order]
        self.log.clear()
        for key, (tokens, sources) in zip(order, texts, strict=True):
            document = self.documents[key]
            self.log.write([SEPARATOR], Source.DEAD)
            low = self.log.write(tokens, document.source)
            self.log.sources[low : self.log.length] = sources
            pieces = (Piece(low, self.log.length),) if tokens.size else ()
            self.documents[key] = PoolDocument.of(document.name, document.source, pieces)

    def _content(self, document: PoolDocument) -> tuple[np.ndarray, np.ndarray]:
        sources = [self.log.sources[low:high] for low, high in document.pieces]
        nothing = np.empty(0, np.uint8)
        return self.log.content(document.pieces), np.concatenate([nothing, *sources])

    def _place(self, document_id: DocumentId, document: PoolDocument | None) -> None:
        former = self.documents.pop(document_id, None)
        if former is not None:
            self.live[former.source] -= former.length
        if document is not None:
            self.documents[document_id] = document
            self.live[document.source] += document.length

    def _note(self, undo: Callable[..., object], *arguments: object) -> None:
        if self.num_savepoints:
            self._undos.append(partial(undo, *arguments))
