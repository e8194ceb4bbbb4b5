"""The growing text of one completion, made of the texts of tokens, perhaps an upstream's."""

import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import pairwise

from engine.request import Chunk, CompletionRequest, FinishReason, TokenText
from engine.text.stopper import Stop, Stopper


@dataclass(slots=True)
class GrowingText:
    """A growing text, complete once `finish_reason` is set; `on_chunk` gets its final parts."""

    request: CompletionRequest
    on_chunk: Callable[[Chunk], None]
    finish_reason: FinishReason | None = None
    text: str = ""
    stopper: Stopper = field(init=False)
    log_probs: list[float] = field(default_factory=list)  # of each token
    _end_log_prob: float = 0.0  # of the token that ended it
    _starts: list[int] = field(default_factory=list)  # of each token, in the text
    _sent: int = 0  # characters in chunks
    _sure: int = 0  # characters in the chunks up to the last one that `is_sure`
    _unsure: str = ""  # in the last chunk
    _num_told: int = 0  # tokens in chunks

    def __post_init__(self) -> None:
        request = self.request
        self.stopper = Stopper(request.stop, request.prefix, request.suffix, copied=request.copied)

    @property
    def is_ended(self) -> bool:
        """Whether the completion has ended."""
        return self.finish_reason is not None

    def grow(self, piece: str, log_prob: float) -> None:
        """Add a token's text and natural log-probability. Raises ValueError after the end."""
        if self.is_ended:
            raise ValueError("the completion has ended")
        self.log_probs.append(log_prob)
        self._starts.append(len(self.stopper.text))
        stop = self.stopper.push(piece, log_prob)
        if stop is None:
            self.text = self.stopper.text
        else:
            self._stop(stop)

    def finish(self, reason: FinishReason, log_prob: float = 0.0) -> None:
        """End for a reason outside the text, unless it has ended already, and send the rest.

        `log_prob` is that of the token which was the reason.
        """
        if not self.is_ended:
            self._end_log_prob = log_prob
            self._stop(self.stopper.finish(reason))
        self.send()

    def send(self) -> None:
        """Send the text that has become final since the last call, and what is unsure of it."""
        stopper = self.stopper
        stable_len = len(self.text) if self.is_ended else stopper.stable_len
        text, self._sent = self.text[self._sent : stable_len], max(self._sent, stable_len)
        tokens = self._whole_tokens() if self.request.tells_tokens else ()
        is_sure = not self.is_ended and self._sure < stopper.told <= stable_len
        is_unsure = not self.is_ended and stopper.may_drop
        unsure = self.text[self._sent :] if is_unsure else ""
        if text or tokens or is_sure or unsure != self._unsure:
            self._sure, self._unsure = stopper.told if is_sure else self._sure, unsure
            self.on_chunk(Chunk(text, tokens, is_sure=is_sure, unsure=unsure))

    def log_prob_of(self, places: Iterable[range]) -> float:
        """Return the log-probability of all tokens that have characters in these places.

        The token that ended the text stands for all places behind it.
        """
        num_chars = len(self.stopper.text)
        tokens = [*pairwise((*self._starts, num_chars)), (num_chars, sys.maxsize)]
        log_probs = [*self.log_probs, self._end_log_prob]
        named = {
            number
            for place in places
            for number, (start, end) in enumerate(tokens)
            if start < place.stop and max(end, start + 1) > place.start
        }
        return sum(log_probs[number] for number in named)

    def _whole_tokens(self) -> tuple[TokenText, ...]:
        """The next tokens whose text was sent; at the end also a token that was cut."""
        first = self._num_told
        starts = self._starts[first:]
        ends = [*starts[1:], len(self.stopper.text)][: len(starts)]
        told = []
        for start, end, log_prob in zip(starts, ends, self.log_probs[first:], strict=True):
            if end > self._sent and not (self.is_ended and start < self._sent):
                break
            told.append(TokenText(self.text[start : min(end, self._sent)], log_prob))
        self._num_told += len(told)
        return tuple(told)

    def _stop(self, stop: Stop) -> None:
        # White space alone shows nothing, and would only get in the way if accepted.
        is_text = bool(stop.text.strip()) or not self.request.stop.drops_blank
        self.text = stop.text if is_text else ""
        self.finish_reason = stop.reason
