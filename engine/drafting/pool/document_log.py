"""Documents in a token log, with an undo record of everything that is done to them."""

from bisect import bisect_left, insort
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import NamedTuple

import numpy as np

from engine.drafting.pool.chains import SEPARATOR
from engine.drafting.pool.documents import Document, DocumentId, Piece
from engine.drafting.pool.token_log import TokenLog
from engine.drafting.tree import Source


class Mark(NamedTuple):
    """A state to return to. Marks nest: closing one closes all later ones."""

    serial: int
    num_changes: int


@dataclass(frozen=True, slots=True)
class _Change:
    """One operation: what it found and overwrote, in order."""

    length: int
    newest: DocumentId | None
    slots: list[tuple[int, int]] = field(default_factory=list)  # slot, former content
    sources: list[tuple[int, np.ndarray]] = field(default_factory=list)  # slot, former bytes
    documents: list[tuple[DocumentId, Document | None]] = field(default_factory=list)


class DocumentLog:
    """Documents by id. Each public operation of the pool calls `begin` first."""

    def __init__(self, capacity: int, vocab_size: int) -> None:
        self.log = TokenLog(capacity, vocab_size)
        self.documents: dict[DocumentId, Document] = {}
        self.newest: DocumentId | None = None  # the document added last
        self.live = np.zeros(len(Source), np.int64)  # tokens by source of their document
        self._order: dict[Source, list[DocumentId]] = {source: [] for source in Source}
        self._ids = count(1)
        self._serials = count(1)
        self._marks: list[Mark] = []
        self._changes: list[_Change] = []

    @property
    def has_marks(self) -> bool:
        """True while something may still be rolled back."""
        return bool(self._marks)

    def begin(self) -> None:
        """Start an operation: it is rolled back whole."""
        if not self._marks:
            self._changes.clear()
        self._changes.append(_Change(self.log.length, self.newest))

    def new_id(self) -> DocumentId:
        """An id that was never used."""
        return DocumentId(next(self._ids))

    def oldest(self, source: Source) -> DocumentId | None:
        """The first document of a source."""
        order = self._order[source]
        return order[0] if order else None

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

    def mark(self) -> Mark:
        """Open a mark."""
        if not self._marks:
            self._changes.clear()
        mark = Mark(next(self._serials), len(self._changes))
        self._marks.append(mark)
        return mark

    def rollback(self, mark: Mark) -> None:
        """Undo all operations since `mark`, newest first, and close it."""
        self.release(mark)
        while len(self._changes) > mark.num_changes:
            self._undo(self._changes.pop())

    def release(self, mark: Mark) -> None:
        """Close `mark`, keeping what was done. Raises ValueError for one that is closed."""
        if mark not in self._marks:
            raise ValueError("this mark was rolled back or released before")
        del self._marks[self._marks.index(mark) :]

    def compact(self) -> None:
        """Write all documents anew, in the order of their last edit, without anything dead."""
        if self._marks:
            raise ValueError("a pool with open marks cannot be compacted")
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
        self.newest = change.newest

    def _place(self, document_id: DocumentId, document: Document | None) -> None:
        former = self.documents.pop(document_id, None)
        if former is not None:
            self.live[former.source] -= former.length
            order = self._order[former.source]
            del order[bisect_left(order, document_id)]
        if document is not None:
            self.documents[document_id] = document
            self.live[document.source] += document.length
            insort(self._order[document.source], document_id)
