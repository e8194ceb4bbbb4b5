"""The completions of each principal that feedback may name, and the clients that are there."""

import time
from collections import OrderedDict
from collections.abc import Callable, Collection
from dataclasses import dataclass

from engine.host.buffers import ClientBuffers, ClientId
from engine.host.engine_thread import EngineThread
from engine.host.metrics import Metrics
from engine.host.principals import Principal
from engine.host.protocol import Done, Feedback, PromptUse
from engine.host.request_builder import Asked, closed_buffers
from engine.request import ClosedBuffers
from engine.scheduler import Scheduler

_KEPT_S = 120.0  # for which a completion is known, who shares a token whatever the others ask
_FEW_ENTRIES, _MOST_ENTRIES = 200, 5000  # of a principal: known for longer, and at all
_SILENT_S = 600.0  # a client that lives speaks more often than this


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


class Presence:
    """The principals and clients that a service has heard of. Belongs to the event loop."""

    def __init__(
        self,
        buffers: ClientBuffers,
        registry: CompletionRegistry,
        scheduler: Scheduler,
        engine_thread: EngineThread,
    ) -> None:
        """Who leaves is forgotten by all of these."""
        self._buffers = buffers
        self._registry = registry
        self._scheduler = scheduler
        self._engine_thread = engine_thread
        self._principals: set[Principal] = set()  # of whom the engine may know something
        self._bufferless: dict[ClientId, float] = {}  # clients of drop-in APIs: when they asked

    def note(self, asked: Asked) -> None:
        """Who asks is there."""
        self._principals.add(asked.principal)
        if not asked.has_buffers:
            self._bufferless[ClientId(asked.principal, asked.client)] = time.monotonic()

    def knows(self, principal: Principal) -> bool:
        """Whether a principal has asked, and may ask still."""
        return principal in self._principals

    def leave(self, client: ClientId, uris: tuple[str, ...] | None) -> None:
        """A client closes buffers, or leaves with all of them: what they taught goes, too."""
        gone = self._buffers.close(client, uris)
        if uris is None:
            self._scheduler.forget(client.name, client.principal.name)
        is_last = not self._buffers.has_open(client)
        if gone.buffers or is_last:
            buffers = gone.buffers.values()
            closed = closed_buffers(client, gone.workspace, buffers, is_last=is_last)
            self._engine_thread.forget(closed)

    def keep_only(self, principals: Collection[Principal]) -> None:
        """Whoever is none of these has left, with all clients."""
        for client in self._buffers.clients:
            if client.principal not in principals:
                self.leave(client, None)
        for principal in self._principals - set(principals):
            self._forget_principal(principal)

    def leave_silent(self) -> None:
        """Clients that have said nothing for ten minutes count as gone."""
        for client in self._buffers.silent(_SILENT_S):
            self.leave(client, None)
        oldest = time.monotonic() - _SILENT_S
        for client in [one for one, at in self._bufferless.items() if at < oldest]:
            del self._bufferless[client]
            self._scheduler.forget(client.name, client.principal.name)
            self._engine_thread.forget(ClosedBuffers.of_all(client.principal.name, client.name))

    def _forget_principal(self, principal: Principal) -> None:
        """Whoever has the name next finds nothing of who had it."""
        self._principals.discard(principal)
        self._scheduler.forget_all(principal.name)
        self._registry.forget(principal)
        for client in [one for one in self._bufferless if one.principal == principal]:
            del self._bufferless[client]
        self._engine_thread.forget(ClosedBuffers.of_all(principal.name))
