"""Completions that were served, and what users did with them."""

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from engine.host.metrics import Metrics
from engine.host.principals import Principal
from engine.host.protocol import Done, Feedback, PromptUse

_KEPT_S = 120.0  # for which a completion is known, who shares a token whatever the others ask
_FEW_ENTRIES, _MOST_ENTRIES = 200, 5000  # of a principal: known for longer, and at all


class UnknownCompletionError(Exception):
    """Feedback about a completion that this host did not serve, or has forgotten."""


@dataclass(slots=True)
class CompletionEntry:
    """A completion that feedback may name."""

    text_len: int
    added_at: float
    accepted_len: int = 0  # counted so far

    def accept(self, length: int | None) -> int:
        """Mark so much of the text accepted, None being all; return what was not so before."""
        accepted = self.text_len if length is None else min(length, self.text_len)
        added = max(0, accepted - self.accepted_len)
        self.accepted_len += added
        return added


class CompletionRegistry:
    """The latest completions of each principal by id; feedback is counted in `metrics`."""

    def __init__(self, metrics: Metrics, clock: Callable[[], float] = time.monotonic) -> None:
        self._metrics, self._clock = metrics, clock
        self._entries: dict[Principal, OrderedDict[str, CompletionEntry]] = {}
        self._last_prompts: dict[Principal, PromptUse] = {}

    def add(self, principal: Principal, completion_id: str, text_len: int) -> None:
        """Add a completion, or say how long it is by now; the principal's old ones are dropped."""
        own, now = self._entries.setdefault(principal, OrderedDict()), self._clock()
        own.setdefault(completion_id, CompletionEntry(text_len, now)).text_len = text_len
        while len(own) > _MOST_ENTRIES or (
            len(own) > _FEW_ENTRIES and next(iter(own.values())).added_at < now - _KEPT_S
        ):
            own.popitem(last=False)

    def add_done(self, principal: Principal, done: Done) -> None:
        """Add a completion that is whole."""
        self.add(principal, done.id, len(done.text))
        if done.prompt_tokens:  # what only read a prompt says nothing of it
            self._last_prompts[principal] = PromptUse.of(done)

    def last_prompt(self, principal: Principal) -> PromptUse | None:
        """What the prompt of a principal's last completion was made of."""
        return self._last_prompts.get(principal)

    def forget(self, principal: Principal) -> None:
        """Whoever has the name next has served nothing here."""
        self._entries.pop(principal, None)
        self._last_prompts.pop(principal, None)

    def record(self, principal: Principal, feedback: Feedback) -> None:
        """Count what became of a principal's own completion. Raises UnknownCompletionError.

        A text that is accepted piece by piece is reported with its total length each time, so
        nothing counts twice.
        """
        entry = self._entries.get(principal, OrderedDict()).get(feedback.completion_id)
        if entry is None:
            raise UnknownCompletionError(feedback.completion_id)
        self._metrics.feedback.labels(feedback.kind).inc()
        if feedback.kind in ("accepted", "partly_accepted"):
            self._metrics.accepted_characters.inc(entry.accept(feedback.accepted_len))
