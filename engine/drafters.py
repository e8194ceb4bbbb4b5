"""Makes the drafter of a request's completion, and keeps the request's texts in its pool."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from weakref import WeakValueDictionary

from engine.drafting.block_copy import BlockCopy
from engine.drafting.draft_state import DraftState, DraftStates
from engine.drafting.drafter import Drafter
from engine.drafting.edited_file import EditedFile
from engine.drafting.line_starts import LineStarts, line_kinds
from engine.drafting.lookahead import LookaheadDrafter
from engine.drafting.open_buffers import OpenBuffers
from engine.drafting.pool import NgramPool, PoolFullError
from engine.drafting.recycler import Recycler
from engine.drafting.text_lookup import TextLookup
from engine.drafting.tree import Source
from engine.learning import Learning
from engine.model.prompt import Prompt
from engine.model.token_tree import MAX_ROWS
from engine.model.tokenizer import Tokenizer
from engine.request import Buffer, ClosedBuffers, CompletionRequest, Snippet

POOL_TOKENS = 8_000_000  # room for all texts held, even at more than one token a character
_REMEMBERED_CONTEXT = 16  # tokens remembered before a completion: twice `CERTAIN` of the pool


class Drafters:
    """Makes drafters. All share acceptance tables and step costs; each principal has a recycler."""

    def __init__(self, tokenizer: Tokenizer, vocab_size: int, learning: Learning) -> None:
        self._tokenizer, self._vocab_size, self._learning = tokenizer, vocab_size, learning
        self._recyclers = WeakValueDictionary[str, Recycler]()  # while a principal has states
        self._line_kinds = line_kinds(tokenizer.vocabulary.spellings)
        self.states = DraftStates(self._make_state)

    def _make_state(self, principal: str) -> DraftState:
        tables, encode = self._learning.tables, self._tokenizer.encode
        pool = NgramPool(POOL_TOKENS, self._vocab_size, acceptance=tables["pool"])
        recycler = Recycler(self._vocab_size, tables["recycler"].probs)
        return DraftState(
            principal=principal,
            recycler=self._recyclers.setdefault(principal, recycler),
            pool=pool,
            buffers=OpenBuffers(pool, encode),
            repository=OpenBuffers(pool, encode, Source.REPOSITORY),
            edited=EditedFile(pool, encode),
        )

    def compile(self) -> None:
        """Compile before the first completion: many seconds once, then 0.1 s from numba's cache."""
        text = "x = 1\n" * 4
        ids = tuple(self._tokenizer.encode(text))
        request = CompletionRequest(text, "", open_buffers=(Buffer("", text),))
        with self.drafter(request, Prompt(ids, b"", b"", ids)) as drafter:
            drafter.draft(ids, None, len(ids))
        self.states.forget(ClosedBuffers.of_all(""))

    @contextmanager
    def drafter(
        self,
        request: CompletionRequest,
        prompt: Prompt,
        closed: Iterable[ClosedBuffers] = (),  # while the prompt was read
        written: Sequence[int] = (),  # drafts when the user types or requests them again
    ) -> Iterator[Drafter]:
        """Hold the request's texts in a pool for its completion, then add the `written` tokens."""
        if request.lookahead.mode == "off":
            yield Drafter()
            return
        context = self.context(prompt)
        with self.states.take(request.workspace, request.principal) as state:
            state.closed += closed
            has_new = state.repository.sync(_files(request.repository))
            if state.buffers.sync(request.open_buffers) or has_new:
                state.edited.close()  # added again, it is the newest document, which comes first
            with state.edited.completed(request, prompt.partial.decode("utf-8", "replace")):
                first_draft = TextLookup(state.pool, self._tokenizer).draft(
                    prompt.context_ids, prompt.partial, MAX_ROWS // 2, owed=bool(prompt.dropped)
                )
                yield LookaheadDrafter(
                    lookahead=request.lookahead,
                    pool=state.pool,
                    recycler=state.recycler,
                    tables=self._learning.tables,
                    budget=self._learning.budget,
                    context=context,
                    first_draft=first_draft,
                    copy=self._copy(request.copied),
                    lines=LineStarts(
                        self._line_kinds, context, self._learning.tables["line"].probs
                    ),
                )
            if written:
                content = [*context[-_REMEMBERED_CONTEXT:], *written]
                with suppress(PoolFullError):
                    state.pool.add(content, Source.PREVIOUS_COMPLETION, request.path)

    def _copy(self, block: str) -> BlockCopy | None:
        probs = self._learning.tables["copy"].probs
        return BlockCopy(block, self._tokenizer, probs) if block else None

    def context(self, prompt: Prompt) -> list[int]:
        """Return the tokens before the answer; at a file's start, the prompt's last token."""
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
