"""The other hosts that serve under the same address, as one of them sees them."""

from engine.host.buffers import ClientId


class Peers:
    """Asked by the routes of one host; these are none. Nothing raises: who is gone has nothing."""

    async def close(self, client: ClientId, uris: tuple[str, ...] | None) -> None:
        """Have all of them forget buffers of a client, which may have been theirs before."""

    async def metrics(self, own: bytes) -> bytes:
        """The figures of all of them, by replica; `own` are those of the host that is asked."""
        return own
