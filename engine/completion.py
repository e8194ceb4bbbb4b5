"""One completion as it grows: tokens become text, rules end it, final text leaves as chunks."""

import codecs
from collections import Counter
from dataclasses import dataclass, field

from engine.drafting.drafter import VerifiedStep
from engine.growing_text import GrowingText
from engine.model.loading.loaded_model import LoadedModel
from engine.model.prompt import Prompt
from engine.request import CompletionResult, CompletionStats, FinishReason


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
        if self.text.finish_reason is None:
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
            self.text.text,
            tuple(self.token_ids),
            self.text.finish_reason,
            stats,
            tuple(self.text.log_probs),
            self.text.confidence,
        )

    def _ends(self, token_id: int) -> bool:
        if token_id in self.model.fim.stop_ids:
            self.text.finish(FinishReason.FIM_TOKEN)
        elif token_id in self.model.tokenizer.vocabulary.end_ids:
            self.text.finish(FinishReason.END_TOKEN)
        return self.text.is_ended
