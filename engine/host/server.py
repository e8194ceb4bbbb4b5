"""The host as a process: sockets, TLS, signals, and an end when nobody needs it any more."""

import asyncio
import socket
import ssl
import time
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import uvicorn

from engine.errors import ConfigurationError
from engine.host.app import create_app
from engine.host.gate import Application, Event, Gate, Receive, Send
from engine.host.service import CompletionService

_SILENT_CLIENT_S = 600.0  # a client that lives speaks more often than this
_WATCH_S = 5.0
_DRAIN_S = 10


@dataclass(frozen=True, slots=True)
class HostOptions:
    """Where to listen, and who may speak. A socket, or else host and port."""

    socket: Path | None = None
    host: str = "127.0.0.1"
    port: int = 8012
    token: str | None = None
    tls_cert: Path | None = None
    tls_key: Path | None = None
    idle_exit_s: float | None = None

    def __post_init__(self) -> None:
        if (self.tls_cert is None) != (self.tls_key is None):
            raise ConfigurationError("--tls-cert and --tls-key come together")
        if not (self.socket or self.token or self.is_loopback):
            raise ConfigurationError(
                f"the host listens on {self.host} only with a token: name a --token-file"
            )
        if not 0 <= self.port <= 65535:
            raise ConfigurationError(f"port {self.port} is not within 0 and 65535")
        self._check_tls()

    @property
    def is_loopback(self) -> bool:
        """Whether no other machine can reach the host."""
        if self.host == "localhost":
            return True
        with suppress(ValueError):
            return ip_address(self.host).is_loopback
        return False

    def _check_tls(self) -> None:
        if self.tls_cert is None or self.tls_key is None:
            return
        for path in (self.tls_cert, self.tls_key):
            if not path.is_file():
                raise ConfigurationError(f"there is no file {path}")
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(self.tls_cert, self.tls_key)
        except (ssl.SSLError, OSError) as error:
            raise ConfigurationError(
                f"{self.tls_cert} and {self.tls_key} are no certificate and its key: {error}"
            ) from error


class HostServer:
    """Runs a service until SIGTERM, `stop`, or the idle time has passed."""

    def __init__(self, service: CompletionService, options: HostOptions) -> None:
        self._service = service
        self._options = options
        self._used_at = time.monotonic()
        app: Any = create_app(service, self.stop)  # its own types are narrower than ASGI's
        is_loopback = options.socket is None and options.is_loopback
        gate = Gate(app, options.token, is_loopback)
        self._server = uvicorn.Server(_config(self._noting_use(gate), options))

    @property
    def is_stopping(self) -> bool:
        """Whether it answers what is under way and nothing else."""
        return self._server.should_exit

    def stop(self) -> None:
        """Answer what is under way, then return from `run`."""
        self._server.should_exit = True

    async def run(self) -> None:
        """Serve. Raises ConfigurationError where it cannot listen."""
        listener = _listen(self._options)
        self._service.start()
        watch = asyncio.create_task(self._watch())
        try:
            await self._server.serve(sockets=[listener])
        finally:
            watch.cancel()
            await self._service.stop()

    def _noting_use(self, app: Application) -> Application:
        async def noting(scope: Event, receive: Receive, send: Send) -> None:
            # Who looks at status, health or metrics does not need the host.
            if scope["type"] == "http" and scope["method"] == "POST":
                self._used_at = time.monotonic()
            await app(scope, receive, send)

        return noting

    async def _watch(self) -> None:
        """Forget silent clients; end once nobody has asked for anything for the idle time."""
        limit = self._options.idle_exit_s
        while True:
            await asyncio.sleep(min(_WATCH_S, limit or _WATCH_S))
            for client in self._service.buffers.drop_silent(_SILENT_CLIENT_S):
                self._service.scheduler.forget(client)
            if limit is not None and time.monotonic() - self._used_at >= limit:
                self.stop()


def _listen(options: HostOptions) -> socket.socket:
    """Bind the socket that only its user may open, or the port. Raises ConfigurationError."""
    try:
        if options.socket is None:
            family = socket.AF_INET6 if ":" in options.host else socket.AF_INET
            return socket.create_server((options.host, options.port), family=family)
        options.socket.unlink(missing_ok=True)
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(options.socket))
        options.socket.chmod(0o600)
        return listener
    except OSError as error:
        place = options.socket or f"{options.host}:{options.port}"
        raise ConfigurationError(f"cannot listen on {place}: {error.strerror}") from error


def _config(app: Application, options: HostOptions) -> uvicorn.Config:
    tls: dict[str, Any] = {}
    if options.tls_cert is not None and options.tls_key is not None:
        tls = {"ssl_certfile": str(options.tls_cert), "ssl_keyfile": str(options.tls_key)}
    return uvicorn.Config(
        app,
        **tls,
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=_DRAIN_S,
    )
