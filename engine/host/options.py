"""Where a host listens, and which clients it lets in."""

import ssl
from dataclasses import dataclass
from pathlib import Path

from engine.errors import ConfigurationError
from engine.host.compat.apis import DEFAULT, EnabledApis
from engine.host.loopback import is_loopback
from engine.host.principals import Principals
from engine.host.runtime import RuntimeFolder


@dataclass(frozen=True, slots=True)
class HostOptions:
    """A host's socket, or else its port, and the clients it lets in. Raises ConfigurationError."""

    socket: Path | None = None
    address: str = "127.0.0.1"
    port: int = 8012
    token: str | None = None
    token_file: Path | None = None  # for one or several principals; read again upon SIGHUP
    token_folder: RuntimeFolder | None = None  # where this user's programs find a port's token
    tls_cert: Path | None = None
    tls_key: Path | None = None
    idle_exit_s: float | None = None
    apis: str = DEFAULT  # names of drop-in APIs, separated by commas, or `none`
    is_insecure: bool = False  # allows unencrypted text and token on a network

    def __post_init__(self) -> None:
        EnabledApis.named(self.apis)
        if (self.tls_cert is None) != (self.tls_key is None):
            raise ConfigurationError("--tls-cert and --tls-key come together")
        if not (self.socket or self.token or self.token_file):
            raise ConfigurationError(
                f"the host listens on {self.address} only with a token: name a --token-file"
            )
        if not (self.is_private or self.tls_cert or self.is_insecure):
            raise ConfigurationError(
                f"on {self.address} without TLS others could read the token and all text on its way: "
                "name --tls-cert and --tls-key, or listen on 127.0.0.1 behind an SSH tunnel; "
                "--insecure is for networks that are guarded otherwise"
            )
        if not 0 <= self.port <= 65535:
            raise ConfigurationError(f"port {self.port} is not within 0 and 65535")
        if self.idle_exit_s is not None and not self.idle_exit_s > 0:
            raise ConfigurationError(f"an idle time of {self.idle_exit_s:g} s is not above 0")
        if self.tls_cert and self.tls_key:
            _check_tls(self.tls_cert, self.tls_key)

    @property
    def is_private(self) -> bool:
        """Whether no other machine can reach the host."""
        return self.socket is not None or is_loopback(self.address)

    @property
    def is_this_users(self) -> bool:
        """Whether it goes by a local name; with a token file, it may go by its proxy's name."""
        return self.socket is None and self.is_private and self.token_file is None

    def principals(self) -> Principals:
        """Return the principals of the token file, or else of the token. Raises ConfigurationError."""
        file = self.token_file
        return Principals.read(file.absolute()) if file else Principals.of(self.token)

    def publish_token(self, address: str, port: int) -> Path | None:
        """Write a port's token, unless a token file has it, and return the file. Raises OSError."""
        if not (self.token and self.token_folder):
            return None
        return self.token_folder.keep_port_token(address, port, self.token)


def _check_tls(cert: Path, key: Path) -> None:
    for path in (cert, key):
        if not path.is_file():
            raise ConfigurationError(f"there is no file {path}")
    try:
        # Without `password`, OpenSSL would ask on the terminal for that of an encrypted key.
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(cert, key, password="")
    except OSError as error:  # ssl.SSLError is one
        raise ConfigurationError(
            f"{cert} and {key} are no certificate and its key: {error}"
        ) from error
