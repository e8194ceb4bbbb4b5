"""Says in each answer which replica gave it. Plain ASGI."""

from dataclasses import dataclass

from engine.host.auth import Application, Event, Receive, Send
from engine.host.protocol import REPLICA_HEADER


@dataclass(frozen=True, slots=True)
class NamedReplica:
    """Passes requests on to `app`, and its answers back with the replica's name."""

    app: Application
    name: str

    async def __call__(self, scope: Event, receive: Receive, send: Send) -> None:
        """Handle one request, or another event, of the ASGI server."""
        header = (REPLICA_HEADER.encode(), self.name.encode())

        async def named(event: Event) -> None:
            if event["type"] == "http.response.start":
                # Another event: the application may send the same one again, in other answers.
                event = {**event, "headers": [*event.get("headers", ()), header]}
            await send(event)

        await self.app(scope, receive, named)
