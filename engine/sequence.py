"""One completion from its prompt to its last chunk, as the step loop drives it."""

import codecs
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field

from engine.decoder import Decoder
from engine.drafting.drafter import VerifiedStep
from engine.growing_text import GrowingText
from engine.model.causal_lm import LoadedModel, StepInput, StepOutput
from engine.model.prompt import Prompt
from engine.model.token_tree import TokenTree
from engine.prompt_cache import CacheLease
from engine.request import (
    ClosedBuffers,
    CompletionRequest,
    Cost,
    Done,
    EditOutcome,
    FinishReason,
)


@dataclass(slots=True)
class Completion:
    """An answer built token by token, so plain and lookahead decoding end at the same one."""

    model: LoadedModel
    text: GrowingText
    owed: int  # next bytes that stand before the cursor already
    token_ids: list[int] = field(default_factory=list)
    steps: int = 0
    rows: int = 0
    accepted: Counter[str] = field(default_factory=Counter)
    _decoder: codecs.IncrementalDecoder = field(
        default_factory=lambda: codecs.getincrementaldecoder("utf-8")("replace")
    )

    def take(self, step: VerifiedStep) -> bool:
        """Add a step's tokens up to the one that ends the completion; return whether one did."""
        self.steps += 1
        self.rows += step.tree.num_rows
        sources = [source.name.lower() for source in step.sources] + ["model"]
        written = zip(step.token_ids.tolist(), step.log_probs.tolist(), sources, strict=True)
        vocabulary = self.model.tokenizer.vocabulary
        for token_id, log_prob, source in written:
            if token_id in self.model.fim.stop_ids:
                self.text.finish(FinishReason.FIM_TOKEN, log_prob)
            elif token_id in vocabulary.end_ids:
                self.text.finish(FinishReason.END_TOKEN, log_prob)
            else:
                self.accepted[source] += 1
                self.token_ids.append(token_id)
                self.text.grow(self._decoded(vocabulary.bytes_of(token_id)), log_prob)
            if self.text.is_ended:
                break
        self.text.send()
        return self.text.is_ended

    def _decoded(self, token: bytes) -> str:
        """Return the characters that `token` completes; none while it ends inside one."""
        skipped = min(self.owed, len(token))
        self.owed -= skipped
        return self._decoder.decode(token[skipped:])


@dataclass(slots=True, eq=False, weakref_slot=True)
class Sequence:
    """A completion in the step loop: it reads its prompt, then decodes if it has `decoding`."""

    request: CompletionRequest
    prompt: Prompt
    completion: Completion
    lease: Callable[["Sequence"], CacheLease | None]  # None while no slot is free
    decoding: Callable[["Sequence", CacheLease], AbstractContextManager[Decoder]] | None
    is_cancelled: Callable[[], bool]
    on_end: Callable[["Sequence"], None]  # when it is done or has failed
    outcome: Callable[[GrowingText], EditOutcome | None] | None = None  # if this is for an edit
    one_row_ms: float = 0.0  # that a step without drafts took here when it began
    closed: list[ClosedBuffers] = field(default_factory=list)  # since it began
    is_done: bool = False
    is_waiting: bool = False  # for a slot
    error: Exception | None = None
    _lease: CacheLease | None = None
    _decoder: Decoder | None = None
    _step: StepInput | None = None
    _reused: int = 0  # prompt tokens that the slot held already
    _held: ExitStack = field(default_factory=ExitStack)  # the lease, then what the decoder holds
    _began: float = field(default_factory=time.perf_counter)
    _read: float = 0.0  # when the prompt had been read
    _ended: float = 0.0

    def next_step(self) -> StepInput | None:
        """Return a piece of the prompt or a draft; None without a slot and at the end."""
        self._step = None
        with self._contained():
            if not self.is_cancelled():
                self._step = self._next_step()
        return self._step

    def settle(self) -> None:
        """Learn from the last step and stream its text, which a stop rule may end."""
        with self._contained():
            if self._decoder is not None and not self.is_done:
                self._decoder.settle()
            if self._is_over:
                self._end()

    def take(self, output: StepOutput | None) -> None:
        """Commit the piece of the prompt that the step read, or the path that it accepted."""
        with self._contained():
            if self.is_done or self._lease is None or self._step is None:
                return
            if self._decoder is not None:
                self._decoder.take(output)
            else:
                self._lease.commit_read(self._step.tree.num_rows)

    def fail(self, error: Exception) -> None:
        """End with an error unless it is done, and discard the slot's contents."""
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
        """End early and release the slot, unless it is done."""
        if not self.is_done:
            self._end()

    def result(self) -> Done:
        """Return the result. Raises the sequence's error, or ValueError before it is done."""
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
            num_open=len(self.request.open_buffers),
            repository_tokens=prompt.repository_tokens,
            repository=prompt.repository,
            avoids_suffix=self.request.sampling.avoids_suffix,
        )
        return Done(
            text.text,
            text.finish_reason,
            cost,
            tuple(written.token_ids),
            tuple(text.log_probs),
            edit=self.outcome(text) if self.outcome else None,
        )

    @property
    def _is_over(self) -> bool:
        """Whether no step follows; without a slot it waits until cancelled."""
        if self.is_done:
            return False
        if self._decoder is not None:
            return self._decoder.is_done
        return self._step is None and (self._lease is not None or self.is_cancelled())

    @contextmanager
    def _contained(self) -> Iterator[None]:
        """Let an error end this sequence alone."""
        try:
            yield
        except Exception as error:  # noqa: BLE001 - the loop goes on for others
            self.fail(error)

    def _next_step(self) -> StepInput | None:
        if self._lease is None:
            self._lease = self.lease(self)
            self.is_waiting = self._lease is None
            if self._lease is None:
                return None
            self._reused = self._lease.reused
            self._held.callback(self._lease.close)
        if unread := self._lease.unread:
            return StepInput(self._lease.slot, TokenTree.chain(unread), has_head=False)
        if self.decoding is None:
            return None
        if self._decoder is None:
            self._decoder = self._held.enter_context(self.decoding(self, self._lease))
            self._read = time.perf_counter()
        return self._decoder.next_step()

    def _end(self) -> None:
        reason = FinishReason.CANCELLED if self.is_cancelled() else FinishReason.CONTEXT_FULL
        self.completion.text.finish(FinishReason.PREFILLED if self.decoding is None else reason)
        if self._lease is not None and self._decoder is not None:
            self._lease.commit_written([self.prompt.ids[-1], *self._decoder.written_ids])
        self._finish()
        self._held.close()  # after `on_end`, as this may take a while

    def _finish(self) -> None:
        """Report the end and drop the slot: its memory is freed with the last reference."""
        self.is_done, self._ended = True, time.perf_counter()
        self._lease = self._decoder = self._step = None
        self.on_end(self)
