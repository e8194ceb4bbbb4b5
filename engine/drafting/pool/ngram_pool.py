"""The pool's face: documents go in, are edited and removed; token trees come out."""

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager

import numpy as np

from engine.drafting.acceptance import AcceptanceTable
from engine.drafting.pool.chains import CONTEXT, SEPARATOR
from engine.drafting.pool.document_log import DocumentLog
from engine.drafting.pool.documents import DocumentId, Piece, PoolDocument, Span
from engine.drafting.pool.edits import REWRITTEN_MOST, replace
from engine.drafting.pool.expansion import prior_acceptance
from engine.drafting.pool.token_log import Continuation
from engine.drafting.tree import Draft, Source
from engine.errors import ForegramError

REPOSITORY_PRIOR = 0.5  # what an occurrence in it weighs, where one in a known file weighs 1
BUDGETS: Mapping[Source, int] = {
    Source.PREVIOUS_COMPLETION: 1 << 16,
    Source.REPOSITORY: 4_000_000,
}


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
        budgets: Mapping[Source, int] = BUDGETS,
        acceptance: AcceptanceTable | None = None,
    ) -> None:
        """Hold up to `capacity` tokens with ids below `vocab_size`.

        `budgets`: most tokens of a source; beyond, its oldest documents go.
        `acceptance`: turns matches into probabilities, and may learn all the while.
        """
        self.acceptance = acceptance or AcceptanceTable(prior_acceptance())
        self._held = DocumentLog(capacity, vocab_size)
        self._vocab_size = vocab_size
        self._priors = np.ones(len(Source))
        self._priors[Source.REPOSITORY] = REPOSITORY_PRIOR
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
        return len(self) > 2 * int(self._held.live.sum()) + (1 << 12)

    def length_of(self, document: DocumentId) -> int:
        """Tokens of a document."""
        return self._document(document).length

    def tail(self, document: DocumentId, num_tokens: int) -> np.ndarray:
        """The last tokens of a document, int32, at most `num_tokens`."""
        held = self._document(document)
        return self._held.log.content(held.cut(max(0, held.length - num_tokens), held.length))

    def add(self, ids: Sequence[int] | np.ndarray, source: Source, name: str = "") -> DocumentId:
        """Append a document, which is met first from now on. Raises PoolFullError."""
        content = self._checked(ids)
        self._make_room(content.size + 1)
        held = self._held
        held.write([SEPARATOR], Source.DEAD)
        low = held.write(content, source)
        pieces = (Piece(low, held.log.length),) if content.size else ()
        document = held.add(PoolDocument.of(name, source, pieces))
        most = self._budgets.get(source)
        while most is not None and held.live[source] > most:
            oldest = held.oldest(source)
            if oldest is None or oldest == document:  # one that is larger alone stays
                break
            self._drop(oldest)
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
        replace(self._held, document, Span(start, end), content, source)

    def remove(self, document: DocumentId) -> None:
        """Forget a document. Raises ValueError for an unknown one."""
        self._document(document)
        self._drop(document)

    def remove_all(self, source: Source, names: Collection[str] | None = None) -> None:
        """Forget the documents of a source: those of these names, or all of them."""
        for document, held in list(self._held.documents.items()):
            if held.source is source and (names is None or held.name in names):
                self._drop(document)

    def extend(self, document: DocumentId, ids: Sequence[int] | np.ndarray) -> None:
        """Let generated tokens follow a document, inside it. Raises ValueError.

        A full log ignores them: drafting loses a little, decoding nothing.
        """
        content, held, former = self._checked(ids), self._held, self._document(document)
        if held.log.free < content.size + REWRITTEN_MOST or not content.size:
            return
        if not former.pieces or former.newest_slot != held.log.length - 1:
            span = Span(former.length, former.length)
            replace(held, document, span, content, Source.GENERATED)
            return
        *pieces, last = former.pieces
        held.write(content, Source.GENERATED)
        pieces.append(Piece(last.low, held.log.length))
        held.put(document, PoolDocument.of(former.name, former.source, tuple(pieces)))

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

    def savepoint(self) -> AbstractContextManager[None]:
        """Undo at the end all that is done meanwhile, edits and removals too. They nest.

        An open one holds up compaction.
        """
        return self._held.savepoint()

    def compact(self) -> None:
        """Throw out what is dead: 80 ms a million tokens. Raises ValueError in a savepoint.

        Documents are then met in the order of their last edit.
        """
        self._held.compact()

    def _find(self, context_ids: Sequence[int] | np.ndarray) -> int:
        return self._held.log.find(np.asarray(context_ids[-CONTEXT:], np.int32), self._priors)

    def _document(self, document: DocumentId) -> PoolDocument:
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

    def _make_room(self, num_slots: int) -> None:
        held = self._held
        if held.log.free >= num_slots:
            return
        if held.num_savepoints:
            raise PoolFullError("the pool is full while a completion is under way")
        wanted = num_slots + held.log.capacity // 8  # so that the next call finds room too
        while held.log.capacity - self._num_live < wanted:
            oldest = held.oldest(Source.REPOSITORY)  # what is least likely to be drafted
            if oldest is None:
                break
            self._drop(oldest)
        self.compact()
        if held.log.free < num_slots:
            raise PoolFullError(f"{num_slots} tokens do not fit into the pool")

    @property
    def _num_live(self) -> int:
        return int(self._held.live.sum()) + len(self._held.documents) + 1
