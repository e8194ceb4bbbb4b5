"""The address of a completion host, and the HTTP client for it."""

import asyncio
import hmac
import platform
import ssl
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import httpcore2
import httpx2

from engine.errors import ConfigurationError, ForegramError
from engine.host.http_client import http_client, tls_context
from engine.host.loopback import is_loopback, loopback_addresses
from engine.host.protocol import PROTOCOL_HEADER, PROTOCOL_VERSION, SESSION_HEADER
from engine.host.runtime import RuntimeFolder
from engine.host.secret_file import check_token, read_token
from lsp_server.settings import Settings

_PORTS = {"http": 80, "https": 443}
_SESSION_DIGITS = 32  # hexadecimal digits, 128 bits: two workspaces never share a name by chance
_IDLE_S = 5.0  # seconds until an idle connection is dropped; the host's uvicorn closes it then, too
_MOST_IDLE = 20  # idle connections that are kept, httpx's default


class SocketTransport(httpx2.AsyncHTTPTransport):
    """A transport to a host on a Unix socket, for use on one event loop."""

    def __init__(self, path: Path) -> None:
        super().__init__(verify=False, uds=str(path))  # reading certificates would take 40 ms
        self._pool = httpcore2.AsyncConnectionPool(
            uds=str(path),
            max_connections=None,
            max_keepalive_connections=_MOST_IDLE,
            keepalive_expiry=_IDLE_S,
            network_backend=_Backend(),
        )


class _Backend(httpcore2.AsyncNetworkBackend):
    """Connects through asyncio's own streams.

    Those of anyio, the default, ask the system at each read and log errors of requests that end.
    """

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
        """Drop data that is not written yet."""
        self._writer.transport.abort()

    def get_extra_info(self, info: str) -> Any:  # noqa: ANN401 - httpcore2's
        """For "is_readable", whether an idle connection has ended."""
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


class HostError(ForegramError):
    """The completion host cannot be started, reached or stopped."""

    code = "host_unavailable"
    exit_status = 5


@dataclass(frozen=True, slots=True)
class HostAddress:
    """Where a host listens, and the token that it requires."""

    token: str = field(repr=False)
    socket_path: Path | None = None
    url: str = "http://localhost"  # the name of a host on a socket
    ca_file: Path | None = None

    def __post_init__(self) -> None:
        check_token(self.token, f"the token for {self.endpoint}", least_len=0)  # it may need none

    @property
    def endpoint(self) -> str:
        """The socket or URL, for messages."""
        return str(self.socket_path or self.url)

    @property
    def is_encrypted(self) -> bool:
        """Whether the connection uses TLS."""
        return self.socket_path is None and self.url.startswith("https:")

    @property
    def is_local(self) -> bool:
        """Whether the host is on this machine."""
        return self.socket_path is not None or is_loopback(self._parsed.host)

    def found_token(self, folder: RuntimeFolder) -> str:
        """Return the token that a host on this machine left for its user; empty if none."""
        port = self._parsed.port or _PORTS[self._parsed.scheme]
        found = (folder.port_token(one, port) for one in loopback_addresses(self._parsed.host))
        return next(filter(None, found), "")

    @property
    def _parsed(self) -> httpx2.URL:
        try:
            return httpx2.URL(self.url)
        except httpx2.InvalidURL as error:
            raise ConfigurationError(f"host_url {self.url} is not an address: {error}") from error

    def session_of(self, workspace: str) -> str:
        """Return a name that keeps a workspace on one replica, unreadable without the token."""
        named = "\0".join([platform.node(), workspace])
        return hmac.digest(self.token.encode(), named.encode(), "sha256").hex()[:_SESSION_DIGITS]

    def client(self, timeout_s: float = 5.0, session: str = "") -> httpx2.AsyncClient:
        """Return a client that the caller closes. Raises ConfigurationError."""
        headers = {
            PROTOCOL_HEADER: str(PROTOCOL_VERSION),
            "content-type": "application/json",
        }
        if session:
            headers[SESSION_HEADER] = session
        return http_client(
            str(self._parsed),
            self.token,  # a host on a socket may require none
            self.tls_context(),
            headers,
            is_local=self.is_local,
            timeout=timeout_s,
            transport=SocketTransport(self.socket_path) if self.socket_path else None,
        )

    def tls_context(self) -> ssl.SSLContext:
        """Trust the system's certificates and `ca_file`. Raises ConfigurationError."""
        return tls_context(self.url, self.ca_file, "ca_file")


def host_address(settings: Settings) -> HostAddress:
    """Return the address of the settings' host, running or not. Raises ForegramError."""
    if settings.host_url is None:
        folder = RuntimeFolder.open(settings.runtime_folder)
        return HostAddress(folder.token(), folder.socket_path)
    token = settings.token or ""
    if settings.token_file and not token:
        token = read_token(settings.token_file, "token_file")
    address = HostAddress(token, url=settings.host_url, ca_file=settings.ca_file)
    if not (address.is_encrypted or address.is_local or settings.insecure_http):
        raise ConfigurationError(
            f"host_url {settings.host_url} is not encrypted, so others could read your code and the "
            "token in transit; use https:// or an SSH tunnel to 127.0.0.1, or set insecure_http if "
            "the network is protected otherwise"
        )
    if address.is_local and not token:
        token = address.found_token(RuntimeFolder.open(settings.runtime_folder))
    return replace(address, token=token)
