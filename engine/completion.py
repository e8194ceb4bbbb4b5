"""One completion as it grows: tokens become text, rules end it, final text leaves as chunks."""

import codecs
import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from engine.drafting.drafter import VerifiedStep
from engine.model.loading.loaded_model import LoadedModel
from engine.model.prompt import Prompt
from engine.request import CompletionChunk, CompletionResult, CompletionStats, FinishReason
from engine.stopping import Stop, Stopper


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
    stopper: Stopper
    stream: TextStream
    on_chunk: Callable[[CompletionChunk], None]
    token_ids: list[int] = field(default_factory=list)
    log_probs: list[float] = field(default_factory=list)  # of these
    finish_reason: FinishReason | None = None
    steps: int = 0
    rows: int = 0
    accepted: Counter[str] = field(default_factory=Counter)
    _starts: list[int] = field(default_factory=list)  # of each token, in the text
    _text: str = ""
    _sent: int = 0

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
            self.log_probs.append(log_prob)
            self._starts.append(len(self.stopper.text))
            text = self.stream.push(self.model.tokenizer.vocabulary.bytes_of(token_id))
            self._grow(text, log_prob)
            if self.finish_reason is not None:
                break
        self._send(self.stopper.stable_len if self.finish_reason is None else len(self._text))
        return self.finish_reason is not None

    def finish(self, reason: FinishReason) -> None:
        """End for a reason that lies outside the text, unless it ended already."""
        if self.finish_reason is None:
            self._stop(self.stopper.finish(reason))
            self._send(len(self._text))

    def result(
        self,
        prompt: Prompt,
        *,
        num_open: int,
        reused_tokens: int,
        prefill_ms: float,
        decode_ms: float,
    ) -> CompletionResult:
        """Return what became of it. Raises ValueError before it ended."""
        if self.finish_reason is None:
            raise ValueError("the completion has not ended")
        stats = CompletionStats(
            tokens=len(self.token_ids),
            steps=self.steps,
            rows=self.rows,
            prompt_tokens=len(prompt.ids),
            reused_tokens=reused_tokens,
            prefill_ms=prefill_ms,
            decode_ms=decode_ms,
            accepted_by_source=dict(self.accepted),
            neighbour_tokens=prompt.neighbour_tokens,
            neighbours=prompt.neighbours,
            num_open=num_open,
            repository_tokens=prompt.repository_tokens,
            repository=prompt.repository,
        )
        return CompletionResult(
            self._text,
            tuple(self.token_ids),
            self.finish_reason,
            stats,
            tuple(self.log_probs),
            self._confidence(),
        )

    def _confidence(self) -> float:
        """The probability of the text: of the tokens that begin in it."""
        starts = zip(self.log_probs, self._starts, strict=True)
        return math.exp(sum(log_prob for log_prob, start in starts if start < len(self._text)))

    def _ends(self, token_id: int) -> bool:
        if token_id in self.model.fim.stop_ids:
            self._stop(self.stopper.finish(FinishReason.FIM_TOKEN))
        elif token_id in self.model.tokenizer.vocabulary.end_ids:
            self._stop(self.stopper.finish(FinishReason.END_TOKEN))
        return self.finish_reason is not None

    def _grow(self, text: str, log_prob: float) -> None:
        stop = self.stopper.push(text, log_prob)
        if stop is None:
            self._text = self.stopper.text
        else:
            self._stop(stop)

    def _stop(self, stop: Stop) -> None:
        # White space alone shows nothing and only gets in the way of who accepts it.
        self._text = stop.text if stop.text.strip() else ""
        self.finish_reason = stop.reason

    def _send(self, stable_len: int) -> None:
        if stable_len > self._sent:
            self.on_chunk(CompletionChunk(self._text[self._sent : stable_len]))
            self._sent = stable_len
