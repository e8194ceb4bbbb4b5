"""One completion from its prompt to its last chunk, as the step loop moves it."""

import codecs
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field

from engine.decoder import Decoder
from engine.drafting.drafter import VerifiedStep
from engine.growing_text import GrowingText
from engine.model.causal_lm import StepInput, StepOutput
from engine.model.loaded_model import LoadedModel
from engine.model.prompt import Prompt
from engine.model.token_tree import TokenTree
from engine.prompt_cache import CacheLease
from engine.request import CompletionResult, Cost, FinishReason


class TextStream:
    """Decodes UTF-8 that may be cut anywhere, and skips the first `owed` bytes."""

    def __init__(self, owed: int) -> None:
        self._owed = owed
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode

    def push(self, token: bytes) -> str:
        """Return the characters that `token` completes; none while it ends inside one."""
        skipped = min(self._owed, len(token))
        self._owed -= skipped
        return self._decode(token[skipped:])


@dataclass(slots=True)
class Completion:
    """Takes the decoder's steps token by token, so plain and lookahead end at the same token."""

    model: LoadedModel
    text: GrowingText
    stream: TextStream
    token_ids: list[int] = field(default_factory=list)
    steps: int = 0
    rows: int = 0
    accepted: Counter[str] = field(default_factory=Counter)

    def take(self, step: VerifiedStep) -> bool:
        """Add a step's tokens up to the one that ends the completion; tell whether one did."""
        self.steps += 1
        self.rows += step.rows
        sources = [source.name.lower() for source in step.sources] + ["model"]
        written = zip(step.token_ids.tolist(), step.log_probs.tolist(), sources, strict=True)
        for token_id, log_prob, source in written:
            if self._ends(token_id):
                break
            self.accepted[source] += 1
            self.token_ids.append(token_id)
            token = self.model.tokenizer.vocabulary.bytes_of(token_id)
            self.text.grow(self.stream.push(token), log_prob)
            if self.text.is_ended:
                break
        self.text.send()
        return self.text.is_ended

    def finish(self, reason: FinishReason) -> None:
        """End for a reason that lies outside the text, unless it ended already."""
        self.text.finish(reason)
        self.text.send()

    def _ends(self, token_id: int) -> bool:
        if token_id in self.model.fim.stop_ids:
            self.text.finish(FinishReason.FIM_TOKEN)
        elif token_id in self.model.tokenizer.vocabulary.end_ids:
            self.text.finish(FinishReason.END_TOKEN)
        return self.text.is_ended


@dataclass(slots=True, eq=False, weakref_slot=True)
class Sequence:
    """Hands out its next step, and takes what became of it: first the prompt is read, then decoded.

    `lease` gives it a slot, None while there is none. `decoding` is entered with the prompt in that
    slot; None where the prompt is only read. `on_end` is called once it is done or has failed.
    """

    prompt: Prompt
    completion: Completion
    lease: Callable[[], CacheLease | None]
    decoding: Callable[[CacheLease], AbstractContextManager[Decoder]] | None
    is_cancelled: Callable[[], bool]
    on_end: Callable[["Sequence"], None] = lambda _: None
    num_open: int = 0  # files open beside this one
    is_done: bool = False
    error: Exception | None = None
    _lease: CacheLease | None = None
    _decoder: Decoder | None = None
    _step: StepInput | None = None
    _reused: int = 0  # of the prompt
    _held: ExitStack = field(default_factory=ExitStack)  # the lease, then what the decoder holds
    _began: float = field(default_factory=time.perf_counter)
    _read: float = 0.0  # when the prompt was
    _ended: float = 0.0

    def next_step(self) -> StepInput | None:
        """Return a piece of the prompt, or draft; None while there is no slot, and at the end."""
        self._step = None
        with self._contained():
            if not self.is_cancelled():
                self._step = self._next_step()
        return self._step

    def settle(self) -> None:
        """Learn from the last step and stream its text, which a rule may end here."""
        with self._contained():
            if self._decoder is not None and not self.is_done:
                self._decoder.settle()
            if self._is_over:
                self._end()

    def take(self, output: StepOutput | None) -> None:
        """Commit what the step read, or the path that it accepted."""
        with self._contained():
            if self.is_done or self._lease is None or self._step is None:
                return
            if self._decoder is not None:
                self._decoder.take(output)
            else:
                self._lease.commit_read(self._step.tree.num_rows)

    def fail(self, error: Exception) -> None:
        """End with an error, unless it is done. What the slot holds by then is not used."""
        if self.is_done:
            return
        self.error = error
        if self._step is not None:
            self._step.is_dropped = True
        if self._lease is not None:
            self._lease.spoil()
        self._held.__exit__(type(error), error, error.__traceback__)
        self._finish()

    def close(self) -> None:
        """Give back what it holds, wherever it stands."""
        if not self.is_done:
            self._end()

    def result(self) -> CompletionResult:
        """Return what became of it. Raises its error, and ValueError before it is done."""
        if self.error is not None:
            raise self.error
        written, text, prompt = self.completion, self.completion.text, self.prompt
        if text.finish_reason is None:
            raise ValueError("the completion has not ended")
        read = self._read or self._ended
        cost = Cost(
            tokens=len(written.token_ids),
            steps=written.steps,
            rows=written.rows,
            prompt_tokens=len(prompt.ids),
            reused_tokens=self._reused,
            prefill_ms=1000 * (read - self._began),
            decode_ms=1000 * (self._ended - read),
            accepted_by_source=dict(written.accepted),
            neighbour_tokens=prompt.neighbour_tokens,
            neighbours=prompt.neighbours,
            num_open=self.num_open,
            repository_tokens=prompt.repository_tokens,
            repository=prompt.repository,
        )
        return CompletionResult(
            text.text, tuple(written.token_ids), text.finish_reason, cost, tuple(text.log_probs)
        )

    @property
    def _is_over(self) -> bool:
        """Whether no step follows; one that waits for a slot goes on unless it is cancelled."""
        if self.is_done:
            return False
        if self._decoder is not None:
            return self._decoder.is_done
        return self._step is None and (self._lease is not None or self.is_cancelled())

    @contextmanager
    def _contained(self) -> Iterator[None]:
        """Whatever this sequence meets ends it, and nothing that goes on beside it."""
        try:
            yield
        except Exception as error:  # noqa: BLE001 - the loop goes on for others
            self.fail(error)

    def _next_step(self) -> StepInput | None:
        if self._lease is None:
            self._lease = self.lease()
            if self._lease is None:
                return None
            self._reused = self._lease.reused
            self._held.callback(self._lease.close)
        if unread := self._lease.unread:
            return StepInput(self._lease.slot, TokenTree.chain(unread), has_head=False)
        if self.decoding is None:
            return None
        if self._decoder is None:
            self._decoder = self._held.enter_context(self.decoding(self._lease))
            self._read = time.perf_counter()
        return self._decoder.next_step()

    def _end(self) -> None:
        """Let the text end where no rule ended it, and give back what is held."""
        reason = FinishReason.CANCELLED if self.is_cancelled() else FinishReason.CONTEXT_FULL
        self.completion.finish(FinishReason.PREFILLED if self.decoding is None else reason)
        if self._lease is not None and self._decoder is not None:
            self._lease.commit_written([self.prompt.ids[-1], *self._decoder.written_ids])
        self._finish()
        self._held.close()  # after the end was told: to put things in order may take a while

    def _finish(self) -> None:
        """Tell the end, and drop the slot: its memory is free once nothing refers to it."""
        self.is_done, self._ended = True, time.perf_counter()
        self._lease = self._decoder = self._step = None
        self.on_end(self)
