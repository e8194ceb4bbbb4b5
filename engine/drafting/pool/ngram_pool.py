"""The pool's face: documents go in, are edited and removed; token trees come out."""

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from engine.drafting.acceptance import AcceptanceTable
from engine.drafting.pool.chains import CONTEXT, SEPARATOR
from engine.drafting.pool.continuations import Continuation
from engine.drafting.pool.document_log import DocumentLog, Mark
from engine.drafting.pool.documents import Document, DocumentId, Piece, Span
from engine.drafting.pool.edits import REWRITTEN_MOST, replace
from engine.drafting.pool.expansion import prior_acceptance
from engine.drafting.tree import Draft, Source
from engine.errors import ForegramError

PRIORS: Mapping[Source, float] = {
    Source.EDITED_FILE: 1.0,
    Source.SUFFIX: 1.0,
    Source.OPEN_BUFFER: 1.0,
    Source.PREVIOUS_COMPLETION: 1.0,
    Source.GENERATED: 1.0,
    Source.DELETED: 0.5,
    Source.REPOSITORY: 0.5,
    Source.HISTORY: 0.1,
    Source.LIBRARY: 0.1,
}
BUDGETS: Mapping[Source, int] = {
    Source.PREVIOUS_COMPLETION: 1 << 16,
    Source.DELETED: 1 << 14,
    Source.REPOSITORY: 4_000_000,
    Source.HISTORY: 5_000_000,
    Source.LIBRARY: 5_000_000,
}
# Who goes first when the log is full: what is least likely to be drafted.
EVICTION = (Source.LIBRARY, Source.HISTORY, Source.DELETED, Source.REPOSITORY)


class PoolFullError(ForegramError):
    """A text does not fit beside those that must stay."""

    code = "pool_full"


class NgramPool:
    """All text known to the engine as token ids, and drafts of what may follow a context.

    Later documents are met first: add the least related ones first and the edited file last.
    The same calls give the same drafts. One thread at a time.
    """

    def __init__(
        self,
        capacity: int,
        vocab_size: int,
        *,
        priors: Mapping[Source, float] = PRIORS,
        budgets: Mapping[Source, int] = BUDGETS,
        acceptance: AcceptanceTable | None = None,
    ) -> None:
        """Hold up to `capacity` tokens with ids below `vocab_size`.

        `priors`: what an occurrence of a source weighs; absent ones are never drafted.
        `budgets`: most tokens of a source; beyond, its oldest documents go.
        `acceptance`: turns matches into probabilities, and may learn all the while.
        """
        self.acceptance = acceptance or AcceptanceTable(prior_acceptance())
        self._held = DocumentLog(capacity, vocab_size)
        self._vocab_size = vocab_size
        self._priors = np.array([priors.get(source, 0.0) for source in Source])
        self._budgets = dict(budgets)

    def __len__(self) -> int:
        """Slots in use, dead ones included."""
        return self._held.log.length

    @property
    def memory_bytes(self) -> int:
        """Memory in use by what is held."""
        return self._held.log.bytes_used

    @property
    def wasteful(self) -> bool:
        """True when half of the log is dead: `compact` in a quiet moment."""
        return not self._held.has_marks and len(self) > 2 * int(self._held.live.sum()) + (1 << 12)

    def length_of(self, document: DocumentId) -> int:
        """Tokens of a document."""
        return self._document(document).length

    def tokens_of(self, document: DocumentId) -> np.ndarray:
        """The tokens of a document, int32."""
        return self._held.log.content(self._document(document).pieces)

    def add(self, ids: Sequence[int] | np.ndarray, source: Source, name: str = "") -> DocumentId:
        """Append a document, the newest one from now on. Raises PoolFullError."""
        content = self._checked(ids)
        self._make_room(content.size + 1)
        held = self._held
        held.begin()
        held.log.write([SEPARATOR], Source.DEAD)
        low = held.log.write(content, source)
        pieces = (Piece(low, held.log.length),) if content.size else ()
        document = held.new_id()
        held.put(document, Document.of(name, source, pieces))
        held.newest = document
        self._keep_budget(source)
        return document

    def edit(
        self, document: DocumentId, start: int, end: int, ids: Sequence[int] | np.ndarray
    ) -> None:
        """Replace the tokens `start` to `end` of a document. Raises ValueError, PoolFullError."""
        content, source = self._checked(ids), self._document(document).source
        if not 0 <= start <= end <= self.length_of(document):
            raise ValueError(f"{start} to {end} is no range of {self.length_of(document)} tokens")
        if start == end and not content.size:
            return
        self._make_room(content.size + REWRITTEN_MOST)
        self._held.begin()
        former = replace(self._held, document, Span(start, end), content, source)
        self._keep_deleted(former)

    def remove(self, document: DocumentId) -> None:
        """Forget a document. Raises ValueError for an unknown one."""
        self._document(document)
        self._held.begin()
        self._drop(document)

    def remove_all(self, source: Source, names: Collection[str] | None = None) -> None:
        """Forget the documents of a source: those of these names, or all of them."""
        documents = self._held.documents.items()
        self._held.begin()
        for document, held in list(documents):
            if held.source is source and (names is None or held.name in names):
                self._drop(document)

    def extend(self, ids: Sequence[int] | np.ndarray) -> None:
        """Let generated tokens follow the newest document, inside it.

        A full log ignores them: drafting loses a little, decoding nothing.
        """
        content, held = self._checked(ids), self._held
        if held.newest is None:
            raise ValueError("no document is there to extend")
        if held.log.free < content.size + REWRITTEN_MOST or not content.size:
            return
        held.begin()
        document = held.documents[held.newest]
        if not document.pieces or document.newest_slot != held.log.length - 1:
            span = Span(document.length, document.length)
            replace(held, held.newest, span, content, Source.GENERATED)
            return
        *pieces, last = document.pieces
        held.log.write(content, Source.GENERATED)
        pieces.append(Piece(last.low, held.log.length))
        held.put(held.newest, Document.of(document.name, document.source, tuple(pieces)))

    def tail(self, num_tokens: int) -> np.ndarray:
        """The last tokens of the newest document, int32, at most `num_tokens`."""
        if self._held.newest is None:
            return np.empty(0, np.int32)
        document = self._held.documents[self._held.newest]
        start = max(0, document.length - num_tokens)
        return self._held.log.content(document.cut(start, document.length))

    def draft(self, context_ids: Sequence[int] | np.ndarray, nodes: int) -> Draft:
        """The likeliest `nodes` tokens after a context, as a tree, best first."""
        return self._held.log.draft(self._find(context_ids), nodes, self.acceptance)

    def continuations(
        self, context_ids: Sequence[int] | np.ndarray, num_tokens: int
    ) -> list[Continuation]:
        """What follows the context elsewhere, `num_tokens` of each occurrence."""
        return self._held.log.continuations(self._find(context_ids), num_tokens)

    def draft_from(self, paths: Sequence[Continuation], nodes: int) -> Draft:
        """The likeliest `nodes` tokens of continuations that the caller changed, as a tree."""
        return self._held.log.draft_from(paths, nodes, self.acceptance)

    def mark(self) -> Mark:
        """Open a mark to roll back to. It holds up compaction until it is closed."""
        return self._held.mark()

    def rollback(self, mark: Mark) -> None:
        """Undo all that was done since `mark`, edits and removals too, and close it."""
        self._held.rollback(mark)

    def release(self, mark: Mark) -> None:
        """Keep what was done since `mark`, and close it."""
        self._held.release(mark)

    def compact(self) -> None:
        """Throw out what is dead: 80 ms a million tokens. Raises ValueError with open marks.

        Deleted text goes too. Documents are then met in the order of their last edit.
        """
        held = self._held
        held.begin()
        while (deleted := held.oldest(Source.DELETED)) is not None:
            held.put(deleted, None)
        held.compact()

    def _find(self, context_ids: Sequence[int] | np.ndarray) -> int:
        return self._held.log.find(np.asarray(context_ids[-CONTEXT:], np.int32), self._priors)

    def _document(self, document: DocumentId) -> Document:
        if document not in self._held.documents:
            raise ValueError(f"no document {document} is in the pool")
        return self._held.documents[document]

    def _checked(self, ids: Sequence[int] | np.ndarray) -> np.ndarray:
        content = np.asarray(ids, np.int32)
        if content.size and not 0 <= content.min() <= content.max() < self._vocab_size:
            raise ValueError("a token id is outside the vocabulary")
        return content

    def _drop(self, document: DocumentId) -> None:
        held = self._held
        held.set_source(held.documents[document].pieces, Source.DEAD)
        held.put(document, None)
        if held.newest == document:
            held.newest = None

    def _keep_budget(self, source: Source) -> None:
        """Drop the oldest documents of a source; one that is larger alone stays."""
        held, most = self._held, self._budgets.get(source)
        while most is not None and held.live[source] > most:
            oldest = held.oldest(source)
            if oldest is None or oldest == held.newest:
                return
            self._drop(oldest)

    def _keep_deleted(self, pieces: tuple[Piece, ...]) -> None:
        document = Document.of("", Source.DELETED, pieces)
        if not 0 < document.length <= self._budgets.get(Source.DELETED, 0):
            return
        self._held.set_source(pieces, Source.DELETED)
        self._held.put(self._held.new_id(), document)
        self._keep_budget(Source.DELETED)

    def _make_room(self, num_slots: int) -> None:
        held = self._held
        if held.log.free >= num_slots:
            return
        if held.has_marks:
            raise PoolFullError("the pool is full while a completion is under way")
        held.begin()
        wanted = num_slots + held.log.capacity // 8  # so that the next call finds room too
        for source in EVICTION:
            while held.log.capacity - self._num_live < wanted:
                oldest = held.oldest(source)
                if oldest is None:
                    break
                self._drop(oldest)
        self.compact()
        if held.log.free < num_slots:
            raise PoolFullError(f"{num_slots} tokens do not fit into the pool")

    @property
    def _num_live(self) -> int:
        return int(self._held.live.sum()) + len(self._held.documents) + 1
