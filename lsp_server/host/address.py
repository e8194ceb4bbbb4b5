"""Where a completion host listens, and how a client of it is made."""

import hmac
import platform
import ssl
from dataclasses import dataclass, field, replace
from pathlib import Path

import httpx2

from engine.errors import ConfigurationError, ForegramError
from engine.host.loopback import is_loopback, loopback_addresses
from engine.host.protocol import PROTOCOL_HEADER, PROTOCOL_VERSION, SESSION_HEADER
from engine.host.runtime import RuntimeFolder
from engine.host.secret_file import read_token
from engine.host.tls_trust import tls_context, usable_proxies
from lsp_server.host.socket_transport import SocketTransport
from lsp_server.settings import Settings

_PORTS = {"http": 80, "https": 443}
_SESSION_DIGITS = 32


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
        if not (self.token.isascii() and self.token.isprintable()):
            raise ConfigurationError(
                f"the token for {self.endpoint} is not a line of ASCII characters"
            )

    @property
    def endpoint(self) -> str:
        """For people: the socket or the address."""
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
        """The token that a host on this machine has left for its user; empty if there is none."""
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
        """The name under which several hosts at one address keep a workspace on one of them.

        Nobody without the token can tell the workspace by it. People who share a token and call
        their folders the same are told apart by their machines.
        """
        told = "\0".join([platform.node(), workspace])
        return hmac.digest(self.token.encode(), told.encode(), "sha256").hex()[:_SESSION_DIGITS]

    def client(
        self, timeout_s: float = 5.0, protocol: int = PROTOCOL_VERSION, session: str = ""
    ) -> httpx2.AsyncClient:
        """A client of this host, which the caller closes. Raises ConfigurationError."""
        headers = {
            PROTOCOL_HEADER: str(protocol),
            "content-type": "application/json",
            "accept-encoding": "identity",
        }
        if self.token:  # a host on a socket may require none
            headers["authorization"] = f"Bearer {self.token}"
        if session:
            headers[SESSION_HEADER] = session
        transport = SocketTransport(self.socket_path) if self.socket_path else None
        with usable_proxies():
            return httpx2.AsyncClient(
                base_url=self._parsed,
                headers=headers,
                timeout=timeout_s,
                verify=self.tls_context(),
                transport=transport,
                trust_env=not self.is_local,  # no proxy is to see what stays on this machine
            )

    def tls_context(self) -> ssl.SSLContext:
        """Trusts what the system trusts, and `ca_file`. Raises ConfigurationError."""
        return tls_context(self.url, self.ca_file, "ca_file")


def host_address(settings: Settings) -> HostAddress:
    """Where the settings expect a host, running or not. Raises ForegramError."""
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
