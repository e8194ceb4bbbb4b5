"""Documents in a token log, with an undo record of everything that is done to them."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count

import numpy as np

from engine.drafting.pool.chains import SEPARATOR
from engine.drafting.pool.documents import Document, DocumentId, Piece
from engine.drafting.pool.token_log import TokenLog
from engine.drafting.tree import Source


@dataclass(frozen=True, slots=True)
class _Change:
    """One operation: what it found and overwrote, in order."""

    length: int
    slots: list[tuple[int, int]] = field(default_factory=list)  # slot, former content
    sources: list[tuple[int, np.ndarray]] = field(default_factory=list)  # slot, former bytes
    documents: list[tuple[DocumentId, Document | None]] = field(default_factory=list)


class DocumentLog:
    """Documents by id. Each public operation of the pool calls `begin` first."""

    def __init__(self, capacity: int, vocab_size: int) -> None:
        self.log = TokenLog(capacity, vocab_size)
        self.documents: dict[DocumentId, Document] = {}
        self.live = np.zeros(len(Source), np.int64)  # tokens by source of their document
        self.num_savepoints = 0  # that are open
        self._ids = count(1)
        self._changes: list[_Change] = []

    def begin(self) -> None:
        """Start an operation: it is rolled back whole."""
        if not self.num_savepoints:
            self._changes.clear()
        self._changes.append(_Change(self.log.length))

    def new_id(self) -> DocumentId:
        """An id that was never used."""
        return DocumentId(next(self._ids))

    def oldest(self, source: Source) -> DocumentId | None:
        """The document of a source that was added first."""
        own = (key for key, document in self.documents.items() if document.source is source)
        return min(own, default=None)

    def put(self, document_id: DocumentId, document: Document | None) -> None:
        """Set what an id stands for; None forgets it."""
        self._changes[-1].documents.append((document_id, self.documents.get(document_id)))
        self._place(document_id, document)

    def overwrite(self, slot: int, content: int) -> None:
        """Set the content of a slot that was written before."""
        self._changes[-1].slots.append((slot, int(self.log.tokens[slot])))
        self.log.tokens[slot] = content

    def set_source(self, pieces: Sequence[Piece], source: Source) -> None:
        """Set the source of slots; DEAD ones are never drafted."""
        for low, high in pieces:
            self._changes[-1].sources.append((low, self.log.sources[low:high].copy()))
            self.log.sources[low:high] = source

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        """Undo at the end, newest first, all operations that began meanwhile."""
        if not self.num_savepoints:
            self._changes.clear()
        kept = len(self._changes)
        self.num_savepoints += 1
        try:
            yield
        finally:
            self.num_savepoints -= 1
            while len(self._changes) > kept:
                self._undo(self._changes.pop())

    def compact(self) -> None:
        """Write all documents anew, in the order of their last edit, without anything dead."""
        if self.num_savepoints:
            raise ValueError("a pool with an open savepoint cannot be compacted")
        self._changes.clear()
        order = sorted(self.documents, key=lambda key: self.documents[key].newest_slot)
        texts = [self._content(self.documents[key]) for key in order]
        self.log.clear()
        for key, (tokens, sources) in zip(order, texts, strict=True):
            document = self.documents[key]
            self.log.write([SEPARATOR], Source.DEAD)
            low = self.log.write(tokens, document.source)
            self.log.sources[low : self.log.length] = sources
            pieces = (Piece(low, self.log.length),) if tokens.size else ()
            self.documents[key] = Document.of(document.name, document.source, pieces)

    def _content(self, document: Document) -> tuple[np.ndarray, np.ndarray]:
        sources = [self.log.sources[low:high] for low, high in document.pieces]
        nothing = np.empty(0, np.uint8)
        return self.log.content(document.pieces), np.concatenate([nothing, *sources])

    def _undo(self, change: _Change) -> None:
        for document_id, document in reversed(change.documents):
            self._place(document_id, document)
        for slot, content in reversed(change.slots):
            self.log.tokens[slot] = content
        for low, former in reversed(change.sources):
            self.log.sources[low : low + former.size] = former
        self.log.take_back(change.length)

    def _place(self, document_id: DocumentId, document: Document | None) -> None:
        former = self.documents.pop(document_id, None)
        if former is not None:
            self.live[former.source] -= former.length
        if document is not None:
            self.documents[document_id] = document
            self.live[document.source] += document.length
