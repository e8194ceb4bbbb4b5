"""Makes the drafter of a request's completion, and keeps the request's texts in its pool."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from weakref import WeakValueDictionary

from engine.config import Lookahead
from engine.drafting.draft_state import DraftState
from engine.drafting.drafter import Drafter
from engine.drafting.edited_file import EditedFile
from engine.drafting.lookahead import LearnedState, LookaheadDrafter
from engine.drafting.open_buffers import OpenBuffers
from engine.drafting.pool import NgramPool, PoolFullError
from engine.drafting.recycler import Recycler
from engine.drafting.text_lookup import TextLookup
from engine.drafting.tree import Source
from engine.learning import Learning
from engine.model.prompt import Prompt
from engine.model.token_tree import MAX_ROWS
from engine.model.tokenizer import Tokenizer
from engine.request import Buffer, CompletionRequest, Snippet

POOL_TOKENS = 8_000_000  # room for all texts held, even at more than one token a character
_REMEMBERED_CONTEXT = 16  # tokens before a completion that are remembered with it


class Drafters:
    """A maker of drafters, each of which has a pool of its own.

    All share acceptance tables and step costs; each principal has a recycler of its own.
    """

    def __init__(self, tokenizer: Tokenizer, vocab_size: int, learning: Learning) -> None:
        self._tokenizer, self._vocab_size, self._learning = tokenizer, vocab_size, learning
        # Each lives as long as a state of its principal.
        self._recyclers = WeakValueDictionary[str, Recycler]()

    def make_state(self, principal: str = "") -> DraftState:
        """An empty pool, and the principal's recycler."""
        acceptance, encode = self._learning.tables["pool"], self._tokenizer.encode
        pool = NgramPool(POOL_TOKENS, self._vocab_size, acceptance=acceptance)
        repository = OpenBuffers(pool, encode, Source.REPOSITORY)
        return DraftState(
            principal=principal,
            recycler=self._recycler(principal),
            pool=pool,
            buffers=OpenBuffers(pool, encode),
            repository=repository,
            edited=EditedFile(pool, encode),
        )

    def compile(self) -> None:
        """Compile the drafters: many seconds once, then less than 0.1 s from numba's cache.

        Otherwise the first completion compiles them.
        """
        state, ids = self.make_state(), [0, 1, 2, 3, 0, 1]
        state.pool.add(ids, Source.OPEN_BUFFER)
        with state.pool.savepoint():
            state.pool.add(ids, Source.EDITED_FILE)
            first_draft = self._lookup(state.pool).draft(ids, b"", MAX_ROWS // 2, owed=False)
            state.pool.extend(ids)
            drafter = LookaheadDrafter(Lookahead(), self._learned(state), ids, first_draft)
            drafter.draft(ids, None, len(ids))

    @contextmanager
    def drafter(
        self, state: DraftState, request: CompletionRequest, prompt: Prompt
    ) -> Iterator[Drafter]:
        """Hold the request's buffers in the pool, and its file during the completion."""
        if request.lookahead.mode == "off":
            yield Drafter()
            return
        has_new = state.repository.sync(request.workspace, _files(request.repository))
        if state.buffers.sync(request.workspace, request.open_buffers) or has_new:
            state.edited.close()  # added again, it is the newest document, which comes first
        partial = prompt.partial.decode("utf-8", "replace")
        with state.edited.completed(request, partial):
            first_draft = self._lookup(state.pool).draft(
                prompt.context_ids, prompt.partial, MAX_ROWS // 2, owed=bool(prompt.dropped)
            )
            learned, context = self._learned(state), self.context(prompt)
            yield LookaheadDrafter(request.lookahead, learned, context, first_draft)

    def remember(
        self,
        state: DraftState,
        request: CompletionRequest,
        prompt: Prompt,
        token_ids: Sequence[int],
    ) -> None:
        """Keep the written tokens: requested again, or typed by hand, they take few steps."""
        if request.lookahead.mode != "off" and token_ids:
            content = [*self.context(prompt)[-_REMEMBERED_CONTEXT:], *token_ids]
            with suppress(PoolFullError):
                state.pool.add(content, Source.PREVIOUS_COMPLETION, request.path)

    def _lookup(self, pool: NgramPool) -> TextLookup:
        tokenizer = self._tokenizer
        return TextLookup(
            pool, tokenizer.vocabulary, tokenizer.encode, in_blocks=tokenizer.encodes_blocks
        )

    def _learned(self, state: DraftState) -> LearnedState:
        learning = self._learning
        return LearnedState(state.pool, state.recycler, learning.tables, learning.budget)

    def _recycler(self, principal: str) -> Recycler:
        recycler = self._recyclers.get(principal)
        if recycler is None:
            recycler = Recycler(self._vocab_size, self._learning.tables["recycler"].probs)
            self._recyclers[principal] = recycler
        return recycler

    def context(self, prompt: Prompt) -> list[int]:
        """Tokens of the file before the answer, with the partial text unless it is healed.

        Never empty: at a file's start it is the prompt's last token.
        """
        context = list(prompt.context_ids)
        if not prompt.dropped:
            context += self._tokenizer.encode(prompt.partial.decode("utf-8", "replace"))
        return context or list(prompt.ids[-1:])


def _files(snippets: Iterable[Snippet]) -> list[Buffer]:
    """Join the snippets of each file into one document."""
    texts: dict[str, list[str]] = {}
    for snippet in snippets:
        texts.setdefault(snippet.path, []).append(snippet.text)
    return [Buffer(path, "\n".join(parts)) for path, parts in texts.items()]
