"""Completions that were made, and what their readers tell of them."""

from collections import OrderedDict
from dataclasses import dataclass

from engine.host.metrics import Metrics
from engine.host.protocol import Feedback

_REMEMBERED = 1000


class UnknownCompletionError(Exception):
    """Feedback about a completion that this host did not make, or has forgotten."""


@dataclass(slots=True)
class Made:
    """A completion that feedback may speak of."""

    text_len: int = 0  # known once it is done
    accepted_len: int = 0  # counted so far

    def accept(self, length: int | None) -> int:
        """Note that so much of it is taken, None being all; return what had not been before."""
        accepted = self.text_len if length is None else min(length, self.text_len)
        added = max(0, accepted - self.accepted_len)
        self.accepted_len += added
        return added


class MadeCompletions:
    """The last of them, by id; feedback about them is counted in `metrics`."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._made: OrderedDict[str, Made] = OrderedDict()

    def remember(self, completion_id: str) -> Made:
        """Note a completion that feedback may speak of; the oldest one is forgotten."""
        made = self._made[completion_id] = Made()
        if len(self._made) > _REMEMBERED:
            self._made.popitem(last=False)
        return made

    def hear(self, feedback: Feedback) -> None:
        """Count what became of one. Raises UnknownCompletionError.

        Who takes it piece by piece tells how much that is by now, so that nothing counts twice.
        """
        made = self._made.get(feedback.completion_id)
        if made is None:
            raise UnknownCompletionError(feedback.completion_id)
        self._metrics.feedback.labels(feedback.kind).inc()
        if feedback.kind in ("accepted", "partly_accepted"):
            self._metrics.accepted_characters.inc(made.accept(feedback.accepted_len))
