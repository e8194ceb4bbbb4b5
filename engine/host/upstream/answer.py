"""An upstream's answer as it streams in, judged piece by piece by our own rules."""

from collections.abc import Collection
from dataclasses import dataclass

from engine.growing_text import GrowingText
from engine.host.upstream.deltas import Delta, SaidToken
from engine.request import FinishReason

_REASONS = {"length": FinishReason.MAX_TOKENS}


class RepeatMissedError(Exception):
    """The answer does not begin with what was cut off the prompt; nothing of it can be shown."""


@dataclass(slots=True)
class UpstreamAnswer:
    """The text of one completion.

    The answer has to begin with `owed`, which stands before the cursor already. `ends` are names of
    special tokens that end a text, `end_ids` their ids where they are known.
    """

    text: GrowingText
    owed: str = ""
    ends: Collection[str] = ()
    end_ids: Collection[int] = ()
    num_tokens: int = 0
    has_log_probs: bool = False
    prompt_tokens: int | None = None
    reused_tokens: int | None = None

    def take(self, delta: Delta) -> bool:
        """Add what an event says; tell whether the text has ended. Raises RepeatMissedError."""
        self.count(delta)
        for token in delta.tokens:
            if self._ends(token) or self.text.is_ended:
                break
        if delta.finish_reason and not self.text.is_ended:
            if self.owed:
                raise RepeatMissedError
            reason = _REASONS.get(delta.finish_reason, FinishReason.END_TOKEN)
            self.text.finish(reason)
        self.text.send()
        return self.text.is_ended

    def count(self, delta: Delta) -> None:
        """Take only the figures of a delta."""
        self.num_tokens += delta.num_tokens
        self.has_log_probs = self.has_log_probs or delta.has_log_probs
        self.prompt_tokens = delta.prompt_tokens or self.prompt_tokens
        self.reused_tokens = delta.reused_tokens or self.reused_tokens

    def _ends(self, token: SaidToken) -> bool:
        """Add a token; tell whether it is one that ends the text."""
        before, is_end = self._before_end(token)
        said = self._unrepeated(before)
        if before or not is_end:
            self.text.grow(said, token.log_prob)
        if is_end and not self.text.is_ended:
            if self.owed:
                raise RepeatMissedError
            self.text.finish(FinishReason.FIM_TOKEN)
        return is_end

    def _before_end(self, token: SaidToken) -> tuple[str, bool]:
        """What a token says before a special one, and whether there is one."""
        if token.id is not None and token.id in self.end_ids:
            return "", True
        starts = [start for name in self.ends if (start := token.text.find(name)) >= 0]
        return (token.text[: min(starts)], True) if starts else (token.text, False)

    def _unrepeated(self, said: str) -> str:
        """What is new of a piece of the answer."""
        if not self.owed:
            return said
        if said.startswith(self.owed):
            said, self.owed = said.removeprefix(self.owed), ""
            return said
        if self.owed.startswith(said):
            self.owed = self.owed.removeprefix(said)
            return ""
        raise RepeatMissedError
