"""HTTP over the Unix socket of a host: what httpx2 does, upon asyncio's own streams.

Those of anyio, which httpx2 takes, ask the system anew at each read, and where a request ends while
its answer arrives, they leave an `InvalidStateError` in the log.
"""

import asyncio
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpcore2
import httpx2

_IDLE_S = 5.0  # after which a connection is not used again; the host closes it then, too
_MOST_IDLE = 20


class SocketTransport(httpx2.AsyncHTTPTransport):
    """A transport to the host that listens on a socket; it is used on one event loop."""

    def __init__(self, path: Path) -> None:
        """Connect where a request needs it."""
        super().__init__(verify=False, uds=str(path))  # certificates would take 40 ms to read
        self._pool = httpcore2.AsyncConnectionPool(
            uds=str(path),
            max_connections=None,
            max_keepalive_connections=_MOST_IDLE,
            keepalive_expiry=_IDLE_S,
            network_backend=_Backend(),
        )


class _Backend(httpcore2.AsyncNetworkBackend):
    async def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,
        socket_options: Iterable[Any] | None = None,  # noqa: ARG002 - a socket's file has none
    ) -> httpcore2.AsyncNetworkStream:
        with _told_as(httpcore2.ConnectError, httpcore2.ConnectTimeout):
            async with asyncio.timeout(timeout):
                return _Stream(*await asyncio.open_unix_connection(path))


class _Stream(httpcore2.AsyncNetworkStream):
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        with _told_as(httpcore2.ReadError, httpcore2.ReadTimeout):
            async with asyncio.timeout(timeout):
                return await self._reader.read(max_bytes)

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        with _told_as(httpcore2.WriteError, httpcore2.WriteTimeout):
            async with asyncio.timeout(timeout):
                self._writer.write(buffer)
                await self._writer.drain()

    async def aclose(self) -> None:
        """Nobody waits for what is not written yet."""
        self._writer.transport.abort()

    def get_extra_info(self, info: str) -> Any:  # noqa: ANN401 - httpcore2's
        """Whether a connection that should be silent has something to read, as its end."""
        if info == "is_readable":
            return self._reader.at_eof() or self._writer.is_closing()
        return None


@contextmanager
def _told_as(broken: type[Exception], late: type[Exception]) -> Iterator[None]:
    try:
        yield
    except TimeoutError as error:
        raise late(str(error)) from error
    except OSError as error:
        raise broken(str(error)) from error
