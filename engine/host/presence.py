"""Who is there, so that what they sent is forgotten once they are not."""

import time
from collections.abc import Collection

from engine.host.asked import Asked
from engine.host.buffers import ClientBuffers, ClientId
from engine.host.completion_registry import CompletionRegistry
from engine.host.engine_thread import EngineThread
from engine.host.principals import Principal
from engine.host.request_builder import closed_buffers
from engine.request import ClosedBuffers
from engine.scheduler import Scheduler

_SILENT_S = 600.0  # a client that lives speaks more often than this


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
