"""The principals and clients that a host knows, and the completions open to feedback."""

import time
from collections import OrderedDict
from collections.abc import Collection
from dataclasses import dataclass, field

from engine.host.buffers import ClientBuffers, ClientId
from engine.host.engine_thread import EngineThread
from engine.host.metrics import Metrics
from engine.host.protocol import Feedback
from engine.host.request_builder import closed_buffers
from engine.request import ClosedBuffers, Cost, Done, FinishReason
from engine.scheduler import Scheduler

_MOST_SERVED = 5000  # completions of a principal open to feedback: a team's last few minutes
_SILENT_S = 600.0  # seconds of silence until a client counts as gone; a live one sends more often


@dataclass(slots=True)
class _Served:
    text_len: int
    accepted_len: int = 0  # characters counted so far


@dataclass(slots=True)
class _Known:
    """A principal that has asked for completions, so the engine may hold its data."""

    served: OrderedDict[str, _Served] = field(default_factory=OrderedDict)  # the latest, by id
    last_prompt: Cost | None = None
    bufferless: dict[str, float] = field(default_factory=dict)  # drop-in clients: last request


@dataclass(slots=True, eq=False)
class Clients:
    """All clients. When one leaves, buffers, scheduler and engine forget it. Event loop only."""

    buffers: ClientBuffers
    scheduler: Scheduler
    engine_thread: EngineThread
    metrics: Metrics
    _known: dict[str, _Known] = field(default_factory=dict)  # by principal

    def note(self, client: ClientId) -> None:
        """Note that a client is alive."""
        known = self._known.setdefault(client.principal, _Known())
        if client not in self.buffers.clients:
            known.bufferless[client.name] = time.monotonic()

    def knows(self, principal: str) -> bool:
        """Whether a principal has asked for completions and still has a token."""
        return principal in self._known

    def add(self, principal: str, completion_id: str, text_len: int) -> None:
        """Add a completion or update its length, dropping the principal's oldest beyond a limit."""
        served = self._known[principal].served
        served.setdefault(completion_id, _Served(text_len)).text_len = text_len
        if len(served) > _MOST_SERVED:
            served.popitem(last=False)

    def add_done(self, principal: str, done: Done) -> None:
        """Add a finished completion."""
        self.add(principal, done.id, len(done.text))
        if done.finish_reason is not FinishReason.PREFILLED:
            self._known[principal].last_prompt = done.cost.without_names

    def last_prompt(self, principal: str) -> Cost | None:
        """Return the cost and prompt figures of a principal's last completion."""
        known = self._known.get(principal)
        return known.last_prompt if known else None

    def record(self, principal: str, feedback: Feedback) -> bool:
        """Count feedback on a principal's own completion, once per character; False if unknown."""
        if client := self.buffers.clients.get(ClientId(principal, feedback.client)):
            client.seen_at = time.monotonic()
        known = self._known.get(principal)
        served = known.served.get(feedback.completion_id) if known else None
        if served is None:
            return False
        self.metrics.feedback.labels(feedback.kind).inc()
        if feedback.kind in ("accepted", "partly_accepted"):
            told = served.text_len if feedback.accepted_len is None else feedback.accepted_len
            accepted = min(told, served.text_len)
            self.metrics.accepted_characters.inc(max(0, accepted - served.accepted_len))
            served.accepted_len = max(accepted, served.accepted_len)
        return True

    def leave(self, client: ClientId, uris: tuple[str, ...] | None) -> None:
        """Close a client's buffers (None: all), and forget what the engine learned from them."""
        gone = self.buffers.close(client, uris)
        if uris is None:
            self.scheduler.forget(client.name, client.principal)
        rest = self.buffers.clients.get(client)
        is_last = rest is None or not rest.buffers
        if gone.buffers or is_last:
            buffers = gone.buffers.values()
            closed = closed_buffers(client, gone.workspace, buffers, is_last=is_last)
            self.engine_thread.forget(closed)

    def keep_only(self, principals: Collection[str]) -> None:
        """Forget all other principals, so that a later one of the same name finds nothing."""
        for client in list(self.buffers.clients):
            if client.principal not in principals:
                self.leave(client, None)
        for principal in self._known.keys() - set(principals):
            del self._known[principal]
            self.scheduler.forget_all(principal)
            self.engine_thread.forget(ClosedBuffers.of_all(principal))

    def leave_silent(self) -> None:
        """Forget the clients that have been silent for ten minutes."""
        oldest = time.monotonic() - _SILENT_S
        clients = self.buffers.clients.items()
        for silent in [name for name, client in clients if client.seen_at < oldest]:
            self.leave(silent, None)
        for principal, known in self._known.items():
            for name in [name for name, at in known.bufferless.items() if at < oldest]:
                del known.bufferless[name]
                self.scheduler.forget(name, principal)
                self.engine_thread.forget(ClosedBuffers.of_all(principal, name))
