"""The text of one completion as it grows: rules end it, final text leaves as chunks.

It knows no tokens, only the text that each one adds, so it serves whoever generates them.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

from engine.request import CompletionChunk, FinishReason
from engine.stopping import Stop, Stopper


@dataclass(slots=True)
class GrowingText:
    """`text` is what stays once `finish_reason` is known; `on_chunk` hears of what is final before."""

    stopper: Stopper
    on_chunk: Callable[[CompletionChunk], None]
    finish_reason: FinishReason | None = None
    text: str = ""
    log_probs: list[float] = field(default_factory=list)  # of each token
    _starts: list[int] = field(default_factory=list)  # of each token, in the text
    _sent: int = 0

    @property
    def is_ended(self) -> bool:
        """Whether nothing follows."""
        return self.finish_reason is not None

    @property
    def confidence(self) -> float:
        """The probability of the text: of the tokens that begin in it."""
        starts = zip(self.log_probs, self._starts, strict=True)
        return math.exp(sum(log_prob for log_prob, start in starts if start < len(self.text)))

    def grow(self, piece: str, log_prob: float) -> None:
        """Add a token's text, which may be empty; a rule may end all of it here.

        `log_prob` is the natural logarithm of the token's probability. Raises ValueError at the end.
        """
        if self.is_ended:
            raise ValueError("the completion has ended")
        self.log_probs.append(log_prob)
        self._starts.append(len(self.stopper.text))
        stop = self.stopper.push(piece, log_prob)
        if stop is None:
            self.text = self.stopper.text
        else:
            self._stop(stop)

    def finish(self, reason: FinishReason) -> None:
        """End for a reason that lies outside the text, unless it ended already."""
        if not self.is_ended:
            self._stop(self.stopper.finish(reason))

    def send(self) -> None:
        """Tell what has become final since it was told last."""
        stable_len = len(self.text) if self.is_ended else self.stopper.stable_len
        if stable_len > self._sent:
            self.on_chunk(CompletionChunk(self.text[self._sent : stable_len]))
            self._sent = stable_len

    def _stop(self, stop: Stop) -> None:
        # White space alone shows nothing and only gets in the way of who accepts it.
        self.text = stop.text if stop.text.strip() else ""
        self.finish_reason = stop.reason
