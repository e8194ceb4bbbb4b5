"""One loaded model, all that it has learned, and the step loop that runs its completions."""

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import NamedTuple, Unpack
from weakref import WeakSet

from engine.completer import Calls, EngineInfo, EngineUsage, ServedEngine
from engine.decoder import Decoder
from engine.drafters import Drafters
from engine.edits.laid_out import EditLayout, LaidOutEdit
from engine.growing_text import GrowingText
from engine.learning import Learning
from engine.model.causal_lm import CausalModel, LoadedModel
from engine.model.chat_template import chat_prompt, has_chat_template
from engine.model.constraint import Constraint, healed_start
from engine.model.prompt import Prompt, build_prompt
from engine.model.raw_prompt import check_length, raw_prompt
from engine.model.token_tree import MAX_ROWS
from engine.per_workspace import PerWorkspace
from engine.prompt_cache import CacheLease, PromptCache
from engine.request import ChatMessage, ClosedBuffers, CompletionRequest, EditTask
from engine.sequence import Completion, Sequence
from engine.snippets import Neighbours
from engine.standing_prompt import StandingPrompt
from engine.text.suffix import repeats

_DECODED_TOKENS = 256  # written tokens that every slot has room for at least
_REMEMBERED_CHARS = 40  # per workspace and prompt token, several times a token's length
_EDIT_CHARS = 3  # per prompt token, of what an edit's prompt shows besides its block
PROMPT_TOKENS = 1024  # the fewest of a `PromptSizes`; 7b reads as many in 51 ms on an H200
_FELT_MS = 100.0  # milliseconds by which a prompt that was read before has to be quicker
_KV_PROMPTS = 5  # kept, by a small model: a key in one of so many files reads only what is new


def step(model: CausalModel, running: Collection[Sequence]) -> None:
    """Run one pass for all and settle the last step meanwhile. A failed pass ends its sequences."""
    steps = {one: next_step for one in running if (next_step := one.next_step())}
    try:
        flight = model.begin(list(steps.values()))
        for one in running:
            one.settle()
        for one, output in zip(steps, flight.finish(), strict=True):
            one.take(output)
    except Exception as error:  # noqa: BLE001 - each of them tells its client
        for one in steps:
            if not one.is_done:
                one.fail(error)


class PromptSizes(NamedTuple):
    """Tokens of a prompt: the most, and where reading them takes long, those of a file's first."""

    most: int = PROMPT_TOKENS
    first: int = PROMPT_TOKENS

    def within(self, context: int) -> "PromptSizes":
        """Return sizes that leave half of a context to the answer."""
        return PromptSizes(*(min(one, context // 2) for one in self))


USUAL_SIZES = PromptSizes()


class LaidOut(NamedTuple):
    """A request as the model reads it."""

    prompt: Prompt
    request: CompletionRequest  # with the text around the cursor, where drafts come from
    edit: LaidOutEdit | None = None
    next_rows: int = 0  # of a piece, if it is read for later, beside the document's present prompt


class Engine(ServedEngine):
    """A loaded model, for one thread. It runs up to `max_sequences` completions together."""

    def __init__(
        self,
        model: LoadedModel,
        learning: Learning,
        sizes: PromptSizes = USUAL_SIZES,
        kv_bytes: int | None = None,  # of cached prompts; a model may have reserved less
    ) -> None:
        causal_lm = model.causal_lm
        self.max_sequences = causal_lm.max_sequences
        self.model = model
        self.learning = learning
        self._sizes = sizes.within(causal_lm.max_context)
        kv_bytes = kv_bytes or causal_lm.kv_bytes(_KV_PROMPTS * self._sizes.first)
        self._neighbours = Neighbours(lambda text: len(model.tokenizer.encode(text)))
        # Most of a prompt is unchanged since the last key; encoding all of it takes 10 ms.
        most_chars = _REMEMBERED_CHARS * self._sizes.most
        self._tokenizers = PerWorkspace(lambda: model.tokenizer.remembering(most_chars))
        self._prompts = PromptCache(causal_lm, kv_bytes)
        self._drafters = Drafters(model.tokenizer, causal_lm.vocab_size, learning)
        self._edits = EditLayout(
            model.name, model.tokenizer, self.chat_prompt, _EDIT_CHARS * self._sizes.first
        )
        self._has_chat = has_chat_template(model.tokenizer)
        self._under_way = WeakSet[Sequence]()

    def compile(self) -> None:
        """Compile the drafters before the first completion: many seconds, once per machine."""
        self._drafters.compile()

    @property
    def info(self) -> EngineInfo:
        """The model and its current device."""
        model = self.model.causal_lm
        return EngineInfo(
            self.model.name,
            model.device,
            model.dtype_name,
            context_len=model.max_context,
            has_chat=self._has_chat,
            threads=self.model.threads,
            place=self.model.place,
        )

    def usage_of(self, principal: str = "") -> EngineUsage:
        """Return the memory of one principal, or of all if unnamed. Safe from any thread."""
        states = self._drafters.states
        return EngineUsage(
            pool_tokens=states.pool_tokens(principal),
            draft_bytes=states.num_bytes(principal),
            kv_bytes=self._prompts.num_bytes(principal),
        )

    def check_can_edit(self, task: EditTask) -> None:
        """Raise UnsupportedModelError if the model makes no such edits. Safe from any thread."""
        self._edits.check(task)

    def laid_out(self, request: CompletionRequest) -> LaidOut:
        """Lay out the prompt. Raises InputError; for an edit, also what `EditLayout` does."""
        model = self.model
        if request.edit is not None and not request.is_raw:
            return self._laid_out_edit(request, self._edits.laid_out(request, request.edit))
        if request.messages:
            request = replace(request, prefix=self.chat_prompt(request.messages), is_raw=True)
        if request.is_raw:
            most = model.causal_lm.max_context - 1
            raw = raw_prompt(model.tokenizer, model.fim, request.prefix, most)
            return LaidOut(raw.prompt, replace(request, prefix=raw.prefix, suffix=raw.suffix))
        prompt = self._prompt(request, self._sizes.most)
        return self._laid_out_sooner(prompt, request) or LaidOut(prompt, request)

    def _prompt(self, request: CompletionRequest, most_tokens: int) -> Prompt:
        return build_prompt(
            self._tokenizers.of(request),
            self.model.fim,
            request.prefix,
            request.suffix,
            request.layout,
            most_tokens,
            path=request.path,
            snippets=lambda room: self._neighbours.snippets(request, room),
        )

    def _laid_out_sooner(self, prompt: Prompt, request: CompletionRequest) -> LaidOut | None:
        """Lay out what is read sooner than `prompt` by a time that a user would feel, if anything.

        Once that is read, a prefill reads `prompt` beside it, where there is room.
        """
        unread_ms = self._unread_ms(prompt, request)
        if unread_ms <= _FELT_MS:
            return None
        for sooner in self._sooner(request):
            left_ms = self._unread_ms(sooner, request)
            if unread_ms - left_ms <= _FELT_MS:
                continue
            later = request.cache_key, len(prompt.ids), request.principal
            if request.stop.max_tokens or left_ms > _FELT_MS or not self._prompts.fits_next(*later):
                return LaidOut(sooner, request)
            return LaidOut(prompt, request, next_rows=self._felt_rows)
        return None

    def _sooner(self, request: CompletionRequest) -> Iterator[Prompt]:
        """Yield the document's latest prompt, grown, and then a first one."""
        if (grown := self._grown(request)) is not None:
            yield grown
        if self._sizes.first < self._sizes.most:
            yield self._prompt(request, self._sizes.first)

    def _grown(self, request: CompletionRequest) -> Prompt | None:
        tokenizer = self._tokenizers.of(request)
        standing = self._prompts.standing(request.principal)
        grown = (one.grown(request, tokenizer, self._sizes.most) for one in standing)
        return next(filter(None, grown), None)

    def _unread_ms(self, prompt: Prompt, request: CompletionRequest) -> float:
        cost = self.learning.budget.cost
        return self._prompts.unread(prompt.ids, request.principal) * cost.ms(MAX_ROWS) / MAX_ROWS

    @property
    def _felt_rows(self) -> int:
        """Rows of a step that a user who types on would hardly wait for."""
        cost, rows = self.learning.budget.cost, MAX_ROWS
        while rows > 16 and cost.ms(rows) > _FELT_MS:
            rows //= 2
        return rows

    def _laid_out_edit(self, request: CompletionRequest, edit: LaidOutEdit) -> LaidOut:
        prompt, raw, *_ = self.laid_out(edit.as_raw(request))
        prompt = replace(prompt, neighbours=edit.shown_paths)
        # Drafts come from the document itself, which the pool then holds for completions, too.
        return LaidOut(prompt, replace(raw, prefix=request.prefix, suffix=request.suffix), edit)

    def chat_prompt(self, messages: tuple[ChatMessage, ...], prefill: str = "") -> str:
        """Return the raw prompt for the answer to messages, which begins with `prefill`.

        Raises NoChatTemplateError and InputError.
        """
        tokenizer, most = self.model.tokenizer, self.model.causal_lm.max_context - 1
        check_length(tokenizer.encode, "".join(one.content for one in messages), most)
        return chat_prompt(tokenizer, messages, prefill)

    def run(self, admit: Callable[[], Collection[Sequence]], /) -> None:
        """Run the step loop until `admit` returns nothing."""
        while running := admit():
            self.step(running)

    def step(self, running: Collection[Sequence]) -> None:
        """Run one pass for all of these."""
        self.learning.budget.share_among(len(running))
        step(self.model.causal_lm, running)

    def runs(self, one: Sequence) -> bool:
        """Whether it has made this sequence."""
        return one in self._under_way

    def sequence(self, request: CompletionRequest, **calls: Unpack[Calls]) -> Sequence:
        """Make a completion for the loop to run. With `max_tokens` 0 it only reads the prompt.

        Raises what `laid_out` raises.
        """
        prompt, request, edit, next_rows = self.laid_out(request)
        text = GrowingText(request, calls["on_chunk"])
        sequence = Sequence(
            request=request,
            prompt=prompt,
            completion=Completion(self.model, text, owed=len(prompt.dropped)),
            lease=partial(self._lease, next_rows=next_rows),
            decoding=self._decoding if request.stop.max_tokens else None,
            is_cancelled=calls["is_cancelled"],
            on_end=calls["on_end"],
            outcome=edit.outcome if edit else None,
            one_row_ms=self.learning.budget.cost.ms(1),
        )
        self._under_way.add(sequence)
        return sequence

    def forget(self, closed: ClosedBuffers) -> None:
        """Forget everything learned from these buffers."""
        self._prompts.forget(closed)
        self._neighbours.forget(closed)
        self._tokenizers.forget(closed)
        self._drafters.states.forget(closed)
        for one in self._under_way:
            if one.request.principal == closed.principal:
                one.closed.append(closed)

    def forget_completions(self) -> None:
        """Stop drafting from earlier completions."""
        self._drafters.states.forget_completions()

    def close(self) -> None:
        """Save the learned costs and tables for the next start."""
        self.learning.save()

    def _lease(self, one: Sequence, *, next_rows: int) -> CacheLease | None:
        """Lease a slot for the prompt without its last token, which the first step reads."""
        request, prompt = one.request, one.prompt
        wanted = max(request.stop.max_tokens, _DECODED_TOKENS)
        room = min(wanted, self._most_tokens(prompt)) + MAX_ROWS
        others = (*prompt.neighbours, *prompt.repository)
        lease = self._prompts.lease(
            request.cache_key,
            prompt.ids[:-1],
            room,
            others,
            request.principal,
            StandingPrompt.of(prompt, request),
            next_rows,
        )
        for closed in one.closed:
            self._prompts.forget(closed)
        return lease

    def _start(self, request: CompletionRequest, prompt: Prompt) -> Constraint | None:
        unlike = None
        if request.sampling.avoids_suffix:
            unlike = tuple(one.encode() for one in repeats(request.prefix, request.suffix))
        return healed_start(prompt.dropped, self.model.tokenizer.vocabulary, unlike)

    def _most_tokens(self, prompt: Prompt) -> int:
        return self.model.causal_lm.max_context - len(prompt.ids)

    @contextmanager
    def _decoding(self, one: Sequence, lease: CacheLease) -> Iterator[Decoder]:
        request, prompt, written = one.request, one.prompt, one.completion.token_ids
        with self._drafters.drafter(request, prompt, one.closed, written) as drafter:
            yield Decoder(
                slot=lease.slot,
                drafter=drafter,
                sampling=request.sampling,
                constraint=self._start(request, prompt),
                current=prompt.ids[-1],
                context=self._drafters.context(prompt),
                max_tokens=min(request.stop.max_tokens, self._most_tokens(prompt)),
                on_step=one.completion.take,
            )
