"""The other hosts that serve under the same address, as one of them sees them."""

from typing import Protocol

from engine.host.buffers import ClientId


class Peers(Protocol):
    """Asked by the routes of one host. Nothing here raises: a peer that is gone has nothing."""

    async def close(self, client: ClientId, uris: tuple[str, ...] | None) -> None:
        """Have all of them forget buffers of a client, which may have been theirs before."""
        ...

    async def metrics(self, own: bytes) -> bytes:
        """The figures of all of them, by replica; `own` are those of the host that is asked."""
        ...


class Alone:
    """A host without any."""

    async def close(self, client: ClientId, uris: tuple[str, ...] | None) -> None:
        """Nobody else holds anything."""

    async def metrics(self, own: bytes) -> bytes:
        """There are no other figures."""
        return own
