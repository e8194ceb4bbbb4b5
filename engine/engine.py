"""One loaded model and all that it has learned: a request in, a completion out."""

import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import torch

from engine.completer import EngineInfo
from engine.completion import Completion
from engine.decoding.decoder import Decoder, Drafter
from engine.decoding.stepping import stepper_of
from engine.drafters import Drafters
from engine.drafting.budget import StepCost
from engine.lanes import Lanes
from engine.learning import Learning
from engine.model.causal_lm import CacheSlot
from engine.model.constraint import healed_start
from engine.model.loading.loaded_model import LoadedModel, LoadOptions, load_model
from engine.model.prompt import Prompt, build_prompt
from engine.model.step_order import Stepper
from engine.model.token_tree import MAX_ROWS
from engine.progress import NoProgress, Progress
from engine.prompt_cache import Entered, PromptCache
from engine.request import (
    ClosedBuffers,
    CompletionChunk,
    CompletionRequest,
    CompletionResult,
    FinishReason,
)
from engine.snippets import Neighbours
from engine.stopping import Stopper
from engine.text_stream import TextStream
from engine.turns import Turns, run_to_end

_ENTER_MS = 600.0  # to read what an Enter brings anew: the text behind the cursor
_ENTER_PART = 4  # which is a quarter of a full prompt
_DECODED_TOKENS = 256  # that a slot has room for, even where a request asks for fewer
_KV_BYTES = 512 * 1024 * 1024  # of cached prompts, where a model does not reserve them ahead


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """Which model to load and how. None leaves the choice to the machine."""

    cache_folder: Path
    model: str | None = None
    dtype: str | None = None
    device: str = "auto"
    threads: int | None = None
    prompt_tokens: int | None = 1024  # None: as many as are quickly typed along here
    kv_bytes: int | None = None  # of the prompts that stay cached


class Engine:
    """A loaded model, for one thread. Up to `num_lanes` completions may go on side by side."""

    def __init__(
        self,
        model: LoadedModel,
        learning: Learning,
        options: EngineOptions,
        make_stepper: Callable[[CacheSlot], Stepper] = stepper_of,
    ) -> None:
        """`make_stepper` lets a benchmark stand between the decoder and the model."""
        self._model = model
        self._learning = learning
        self._make_stepper = make_stepper
        budget = options.prompt_tokens or affordable_prompt(learning.budget.cost)
        self._prompt_tokens = min(budget, model.causal_lm.max_context // 2)
        kv_bytes = model.causal_lm.reserved_bytes or options.kv_bytes or _KV_BYTES
        self._neighbours = Neighbours(lambda text: len(model.tokenizer.encode(text)))
        self._prompts = PromptCache(model.causal_lm, kv_bytes)
        self._drafters = Drafters(model.tokenizer, model.causal_lm.vocab_size, learning)
        self._lanes = Lanes(self._drafters.make_lane)

    @classmethod
    def load(cls, options: EngineOptions, progress: Progress | None = None) -> "Engine":
        """Load the model, converting it if need be, and measure its steps. Raises ForegramError."""
        progress = progress or NoProgress()
        model = wanted_model(options, progress)
        learning = Learning.load(
            options.cache_folder / "learned", _machine_key(model), model.causal_lm, progress
        )
        return cls(model, learning, options)

    @property
    def info(self) -> EngineInfo:
        """The model's name, its device and how its weights are held."""
        model = self._model.causal_lm
        return EngineInfo(self._model.name, model.device, model.dtype_name)

    @property
    def pool_tokens(self) -> int:
        """Tokens that drafts are found in."""
        return self._lanes.pool_tokens

    @property
    def num_lanes(self) -> int:
        """Completions that one step can serve."""
        return self._model.causal_lm.num_lanes

    def expect(self, num_running: int) -> None:
        """So many completions go on side by side from now on, and share each step."""
        self._model.causal_lm.expect(num_running)
        self._learning.budget.num_sequences = max(1, num_running)

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
            snippets=lambda room: self._neighbours.snippets(request, room),
        )

    def complete(
        self,
        request: CompletionRequest,
        *,
        on_chunk: Callable[[CompletionChunk], None] = lambda _: None,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> CompletionResult:
        """Complete; `on_chunk` hears of text once it is final, `cancelled` is asked at each step."""
        return run_to_end(self.completing(request, on_chunk=on_chunk, cancelled=cancelled))

    def completing(
        self,
        request: CompletionRequest,
        *,
        on_chunk: Callable[[CompletionChunk], None],
        cancelled: Callable[[], bool],
    ) -> Turns[CompletionResult]:
        """Complete in turns, one for each step and each piece of the prompt that is read."""
        prompt = self.prompt(request)
        completion = Completion(
            model=self._model,
            stopper=Stopper(request.stop, request.prefix, request.suffix),
            stream=TextStream(owed=len(prompt.dropped)),
            on_chunk=on_chunk,
        )
        began = time.perf_counter()
        limit = min(request.stop.max_tokens, self._model.causal_lm.max_context - len(prompt.ids))
        entered = yield from self._enter(request, prompt, limit, cancelled)
        decoding = time.perf_counter()
        if entered is not None:
            with closing(entered), self._lanes.take(request.workspace) as lane:
                with self._drafters.drafter(lane, request, prompt) as drafter:
                    decoding = time.perf_counter()
                    yield from self._decode(
                        request, prompt, entered, limit, drafter, completion, cancelled
                    )
                self._drafters.remember(lane, request, prompt, completion.token_ids)
        completion.finish(FinishReason.CANCELLED if cancelled() else FinishReason.CONTEXT_FULL)
        return completion.result(
            prompt,
            num_open=len(request.open_buffers),
            reused_tokens=0 if entered is None else entered.reused,
            prefill_ms=1000 * (decoding - began),
            decode_ms=1000 * (time.perf_counter() - decoding),
        )

    def prefilling(
        self, request: CompletionRequest, *, cancelled: Callable[[], bool]
    ) -> Turns[None]:
        """Read the request's prompt, so that completing it, or one like it, begins at once."""
        prompt = self.prompt(request)
        entered = yield from self._enter(request, prompt, 0, cancelled)
        if entered is not None:
            entered.leave(prompt.ids)

    def forget(self, closed: ClosedBuffers) -> None:
        """Use no longer what was learned from these buffers."""
        self._prompts.forget(closed.cache_scope, closed.cache_keys, closed.paths)
        self._neighbours.forget()
        self._lanes.forget(closed)

    def forget_completions(self) -> None:
        """Draft no longer from completions written before."""
        self._lanes.forget_completions()

    def close(self) -> None:
        """Keep what was learned for the next start."""
        self._learning.save()

    def _enter(
        self,
        request: CompletionRequest,
        prompt: Prompt,
        max_tokens: int,
        cancelled: Callable[[], bool],
    ) -> Turns[Entered | None]:
        """Read all of the prompt but its last token, which the first step takes."""
        room = max(max_tokens, _DECODED_TOKENS) + MAX_ROWS
        room = min(room, self._model.causal_lm.max_context - len(prompt.ids) + MAX_ROWS)
        return self._prompts.enter(
            request.cache_key, prompt.ids[:-1], room, cancelled, prompt.neighbours
        )

    def _decode(
        self,
        request: CompletionRequest,
        prompt: Prompt,
        entered: Entered,
        max_tokens: int,
        drafter: Drafter,
        completion: Completion,
        cancelled: Callable[[], bool],
    ) -> Turns[None]:
        vocabulary = self._model.tokenizer.vocabulary
        constraint = healed_start(prompt.dropped, self._model.trie, vocabulary)
        stepper = self._make_stepper(entered.slot)
        decoder = Decoder(stepper, drafter, request.sampling, constraint, cancelled)
        steps = decoder.steps(prompt.ids[-1], self._drafters.context(prompt), max_tokens)
        written = list(prompt.ids)
        try:
            for step in steps:
                written += step.token_ids
                if completion.take(step):
                    break
                yield
        except Exception:
            written = []  # what a step that failed was to move may not have been moved
            raise
        finally:
            steps.close()
            entered.leave(written)


def wanted_model(options: EngineOptions, progress: Progress) -> LoadedModel:
    """Load the model that the options name. Raises ForegramError."""
    if options.threads is not None:
        torch.set_num_threads(options.threads)
    wanted = LoadOptions(options.model, options.dtype, options.device, options.kv_bytes)
    return load_model(wanted, options.cache_folder, progress)


def affordable_prompt(cost: StepCost) -> int:
    """Return the tokens of a prompt that is quickly typed along: a power of two, 1024 to 8192.

    It is read as a whole when the user comes to a file, and then only what is new: a few tokens at
    a key, which cost the same behind a long prompt, and the text behind the cursor at an Enter.
    A coarse figure: a prompt laid out with another budget shares no keys with those before.
    """
    affordable = _ENTER_PART * _ENTER_MS / cost.ms(MAX_ROWS) * MAX_ROWS
    return int(2 ** min(13, max(10, int(affordable).bit_length() - 1)))


def _machine_key(model: LoadedModel) -> str:
    """What step costs and acceptance depend on, as a file name."""
    causal_lm = model.causal_lm
    parts = [causal_lm.device, causal_lm.dtype_name, f"{torch.get_num_threads()}-threads"]
    return "-".join([model.fingerprint[:16], *parts]).replace(":", "-")
