"""One loaded model and all that it has learned: a request in, a completion out."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import torch

from engine.completion import Completion
from engine.decoding.budget import StepCost
from engine.decoding.constraint import healed_start
from engine.decoding.decoder import Decoder, Drafter, NoDrafts
from engine.decoding.drafting import Knowledge, LookaheadDrafter
from engine.decoding.pool import NgramPool, PoolFullError
from engine.decoding.recycler import Recycler
from engine.decoding.stopping import Stopper
from engine.decoding.text_lookup import TextLookup
from engine.decoding.tree import Source
from engine.learning import Learning
from engine.model.causal_lm import MAX_ROWS, CacheSlot
from engine.model.loaded_model import LoadedModel, load_model
from engine.model.prompt import Prompt, build_prompt
from engine.open_buffers import OpenBuffers
from engine.progress import NoProgress, Progress
from engine.prompt_cache import Entered, PromptCache
from engine.request import CompletionChunk, CompletionRequest, CompletionResult, FinishReason
from engine.snippets import related_snippets
from engine.text_stream import TextStream
from engine.workspace import Workspace

POOL_TOKENS = 8_000_000  # room for all texts let in, at well over one token a character
_HEAD_CHARS, _REST_CHARS = 1_000_000, 500_000  # of the edited file, around the cursor
_PREFILL_MS = 1000.0  # for a prompt of which nothing is cached
_DECODED_TOKENS = 256  # that a slot has room for, even where a request asks for fewer
_REMEMBERED_CONTEXT = 16  # tokens before a completion that are remembered with it


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """Which model to load and how. None leaves the choice to the machine."""

    cache_folder: Path
    model: str | None = None
    dtype: str | None = None
    threads: int | None = None
    prompt_tokens: int | None = 1024  # None: as many as this machine reads in about a second
    kv_bytes: int = 512 * 1024 * 1024  # of the prompts that stay cached


@dataclass(frozen=True, slots=True)
class EngineInfo:
    """What an engine says of itself."""

    model: str
    device: str
    dtype: str


class Engine:
    """A loaded model. One request at a time; not safe to share between threads."""

    def __init__(self, model: LoadedModel, learning: Learning, options: EngineOptions) -> None:
        self._model = model
        self._learning = learning
        budget = options.prompt_tokens or affordable_prompt(learning.budget.cost)
        self._prompt_tokens = min(budget, model.network.max_context // 2)
        self._prompts = PromptCache(model.network, options.kv_bytes)
        tables, vocab_size = learning.tables, model.network.vocab_size
        self._known = Knowledge(
            pool=NgramPool(POOL_TOKENS, vocab_size, acceptance=tables["pool"]),
            recycler=Recycler(vocab_size, tables["recycler"].probs),
            tables=tables,
            budget=learning.budget,
        )
        self._buffers = OpenBuffers(Workspace(self._known.pool, model.tokenizer.encode))

    @classmethod
    def load(cls, options: EngineOptions, progress: Progress | None = None) -> "Engine":
        """Load the model, converting it if need be, and measure its steps. Raises ForegramError."""
        if options.threads is not None:
            torch.set_num_threads(options.threads)
        progress = progress or NoProgress()
        model = load_model(options.model, options.dtype, options.cache_folder, progress)
        learning = Learning.load(
            options.cache_folder / "learned", _machine_key(model), model.network, progress
        )
        return cls(model, learning, options)

    @property
    def info(self) -> EngineInfo:
        """The model's name, its device and how its weights are held."""
        network = self._model.network
        return EngineInfo(self._model.name, network.device, network.dtype_name)

    @property
    def pool_tokens(self) -> int:
        """Tokens that drafts are found in."""
        return len(self._known.pool)

    @property
    def kv_bytes(self) -> int:
        """Memory of the cached prompts."""
        return self._prompts.num_bytes

    def prompt(self, request: CompletionRequest) -> Prompt:
        """Lay out the request's prompt as `complete` does."""
        model = self._model
        return build_prompt(
            model.tokenizer,
            model.fim,
            request.prefix,
            request.suffix,
            request.layout,
            self._prompt_tokens,
            path=request.path,
            snippets=related_snippets(request),
        )

    def complete(
        self,
        request: CompletionRequest,
        *,
        on_chunk: Callable[[CompletionChunk], None] = lambda _: None,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> CompletionResult:
        """Complete; `on_chunk` hears of text once it is final, `cancelled` is asked at each step."""
        prompt = self.prompt(request)
        completion = Completion(
            model=self._model,
            stopper=Stopper(request.stop, request.prefix, request.suffix),
            stream=TextStream(owed=len(prompt.dropped)),
            on_chunk=on_chunk,
        )
        began = time.perf_counter()
        limit = min(request.stop.max_tokens, self._model.network.max_context - len(prompt.ids))
        entered = self._enter(request, prompt, limit, cancelled)
        decoding = time.perf_counter()
        if entered is not None:
            with self._drafter(request, prompt) as drafter:
                decoding = time.perf_counter()
                self._decode(request, prompt, entered.slot, limit, drafter, completion, cancelled)
        completion.finish(FinishReason.CANCELLED if cancelled() else FinishReason.CONTEXT_FULL)
        self._remember(request, prompt, completion.token_ids)
        return completion.result(
            prompt_tokens=len(prompt.ids),
            reused_tokens=0 if entered is None else entered.reused,
            prefill_ms=1000 * (decoding - began),
            decode_ms=1000 * (time.perf_counter() - decoding),
        )

    def prefill(self, request: CompletionRequest, cancelled: Callable[[], bool]) -> None:
        """Read the request's prompt, so that completing it, or one like it, begins at once."""
        self._enter(request, self.prompt(request), 0, cancelled)

    def forget_completions(self) -> None:
        """Draft no longer from completions written before."""
        self._known.pool.remove_all(Source.PREVIOUS_COMPLETION)

    def close(self) -> None:
        """Keep what was learned for the next start."""
        self._learning.save()

    def _enter(
        self,
        request: CompletionRequest,
        prompt: Prompt,
        max_tokens: int,
        cancelled: Callable[[], bool],
    ) -> Entered | None:
        """Read all of the prompt but its last token, which the first step takes."""
        room = max(max_tokens, _DECODED_TOKENS) + MAX_ROWS
        room = min(room, self._model.network.max_context - len(prompt.ids) + MAX_ROWS)
        return self._prompts.enter(request.cache_key, prompt.ids[:-1], room, cancelled)

    def _decode(
        self,
        request: CompletionRequest,
        prompt: Prompt,
        slot: CacheSlot,
        max_tokens: int,
        drafter: Drafter,
        completion: Completion,
        cancelled: Callable[[], bool],
    ) -> None:
        vocabulary = self._model.tokenizer.vocabulary
        constraint = healed_start(prompt.dropped, self._model.trie, vocabulary)
        decoder = Decoder(slot, drafter, request.sampling, constraint, cancelled)
        written = list(prompt.ids)
        for step in decoder.steps(prompt.ids[-1], self._context(prompt), max_tokens):
            written += step.token_ids
            if completion.take(step):
                break
        self._prompts.keep(request.cache_key, written)

    @contextmanager
    def _drafter(self, request: CompletionRequest, prompt: Prompt) -> Iterator[Drafter]:
        """Let the pool know the request's buffers, and its file for as long as it is completed."""
        if request.lookahead.mode == "off":
            yield NoDrafts()
            return
        pool, encode = self._known.pool, self._model.tokenizer.encode
        self._buffers.sync(request.workspace, request.open_buffers)
        mark = pool.mark()
        try:
            pool.add(encode(request.suffix[:_REST_CHARS]), Source.SUFFIX, request.path)
            head = request.prefix.removesuffix(prompt.partial.decode("utf-8", "replace"))
            head = head[-_HEAD_CHARS:]
            pool.add(encode(head), Source.EDITED_FILE, request.path)
            bytes_of = self._model.tokenizer.vocabulary.bytes_of
            first_draft = TextLookup(pool, bytes_of, encode).draft(
                prompt.context_ids, prompt.partial, MAX_ROWS // 2, owed=bool(prompt.dropped)
            )
            context = self._context(prompt)
            yield LookaheadDrafter(request.lookahead, self._known, context, first_draft)
        finally:
            pool.rollback(mark)

    def _remember(
        self, request: CompletionRequest, prompt: Prompt, token_ids: Sequence[int]
    ) -> None:
        """Keep what was written: who asks again, or types on as predicted, gets it in few steps."""
        if request.lookahead.mode != "off" and token_ids:
            content = [*self._context(prompt)[-_REMEMBERED_CONTEXT:], *token_ids]
            with suppress(PoolFullError):
                self._known.pool.add(content, Source.PREVIOUS_COMPLETION, request.path)

    def _context(self, prompt: Prompt) -> list[int]:
        """Tokens that the answer follows in the file; they hold what is not to be healed.

        Never empty: at a file's start it is the mark that the answer follows in the prompt.
        """
        context = list(prompt.context_ids)
        if not prompt.dropped:
            context += self._model.tokenizer.encode(prompt.partial.decode("utf-8", "replace"))
        return context or list(prompt.ids[-1:])


def affordable_prompt(cost: StepCost) -> int:
    """Return the tokens of a prompt that is read in a second, as a power of two from 512 to 8192.

    A coarse figure: a prompt laid out with another budget shares no keys with those before.
    """
    affordable = _PREFILL_MS / cost.ms(MAX_ROWS) * MAX_ROWS
    return int(2 ** min(13, max(9, int(affordable).bit_length() - 1)))


def _machine_key(model: LoadedModel) -> str:
    """What step costs and acceptance depend on, as a file name."""
    network = model.network
    parts = [network.device, network.dtype_name, f"{torch.get_num_threads()}-threads"]
    return "-".join([model.fingerprint[:16], *parts]).replace(":", "-")
