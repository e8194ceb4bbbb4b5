"""The host as a process: sockets, TLS, signals, and an end when nobody needs it any more."""

import asyncio
import errno
import logging
import os
import signal
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvicorn

from engine.errors import ConfigurationError
from engine.host.app import create_app
from engine.host.gate import Application, Event, Gate, Receive, Send, is_loopback
from engine.host.service import CompletionService

_SILENT_CLIENT_S = 600.0  # a client that lives speaks more often than this
_WATCH_S = 5.0
_DRAIN_S = 10
_PROBE_S = 1.0  # for whoever may listen on a socket file that is there
_log = logging.getLogger("foregram.host")


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
        if self.idle_exit_s is not None and not self.idle_exit_s > 0:
            raise ConfigurationError(f"an idle time of {self.idle_exit_s:g} s is not above 0")
        self._check_tls()

    @property
    def is_loopback(self) -> bool:
        """Whether no other machine can reach the host."""
        return is_loopback(self.host)

    def _check_tls(self) -> None:
        if self.tls_cert is None or self.tls_key is None:
            return
        for path in (self.tls_cert, self.tls_key):
            if not path.is_file():
                raise ConfigurationError(f"there is no file {path}")
        try:
            # Without a password a key that has one would be asked for on the terminal.
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(
                self.tls_cert, self.tls_key, password=""
            )
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
        is_local = options.socket is None and options.is_loopback
        gate = Gate(self._noting_use(app), options.token, is_local)
        self._server = uvicorn.Server(_config(gate, options))

    @property
    def is_stopping(self) -> bool:
        """Whether it answers what is under way and nothing else."""
        return self._server.should_exit

    def stop(self) -> None:
        """Answer what is under way, then return from `run`."""
        self._server.should_exit = True

    async def run(self) -> None:
        """Serve. Raises ConfigurationError where it cannot listen.

        Raises DeviceLostError in the end where the engine's device was lost.
        """
        with _signals(self.stop), _listener(self._options) as listener:
            self._service.start(self.stop)
            watch = asyncio.create_task(self._watch())
            try:
                await self._server.serve(sockets=[listener])
            finally:
                watch.cancel()
                await self._service.stop()
        if self._service.lost is not None:
            raise self._service.lost

    def _noting_use(self, app: Application) -> Application:
        async def noting(scope: Event, receive: Receive, send: Send) -> None:
            # Who looks at status, health or metrics does not need the host.
            is_use = scope["type"] == "http" and scope["method"] == "POST"
            if is_use:
                self._used_at = time.monotonic()
            try:
                await app(scope, receive, send)
            finally:
                if is_use:
                    self._used_at = time.monotonic()

        return noting

    async def _watch(self) -> None:
        """Forget silent clients; end once nobody has asked for anything for the idle time."""
        limit = self._options.idle_exit_s
        # Often enough that little of the idle time is lost when the model has been loaded.
        pause_s = _WATCH_S if limit is None else min(_WATCH_S, limit / 4)
        while True:
            await asyncio.sleep(pause_s)
            for client in self._service.buffers.drop_silent(_SILENT_CLIENT_S):
                self._service.scheduler.forget(client)
            if self._service.is_busy:
                self._used_at = time.monotonic()
            if limit is not None and time.monotonic() - self._used_at >= limit:
                self.stop()


@contextmanager
def _signals(stop: Callable[[], None]) -> Iterator[None]:
    """Have signals end the host as `stop` does, to the last line that keeps what was learned.

    uvicorn drains by itself; then it raises the signal anew, which here does nothing more.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    ends = (signal.SIGINT, signal.SIGTERM)
    former = {one: signal.signal(one, lambda *_: stop()) for one in ends}
    try:
        yield
    finally:
        for one, handler in former.items():
            signal.signal(one, handler)


@contextmanager
def _listener(options: HostOptions) -> Iterator[socket.socket]:
    """The port, or the socket that only its user may open. Raises ConfigurationError."""
    place = options.socket or f"{options.host}:{options.port}"
    try:
        listener = _bound(options)
    except OSError as error:
        raise ConfigurationError(f"cannot listen on {place}: {error.strerror or error}") from error
    if options.socket is None:  # the port may have been the system's choice
        place = f"{options.host}:{listener.getsockname()[1]}"
    made = options.socket.stat() if options.socket is not None else None
    _log.info("listening on %s", place)
    try:
        yield listener
    finally:
        listener.close()
        if options.socket is not None and made is not None:
            with suppress(FileNotFoundError):
                if os.path.samestat(options.socket.stat(), made):  # not another host's by now
                    options.socket.unlink()


def _bound(options: HostOptions) -> socket.socket:
    path = options.socket
    if path is None:
        family = socket.AF_INET6 if ":" in options.host else socket.AF_INET
        return socket.create_server((options.host, options.port), family=family)
    if path.is_socket():
        if _is_alive(path):
            raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))
        path.unlink()
    listener = socket.socket(socket.AF_UNIX)
    try:
        listener.bind(str(path))
        path.chmod(0o600)
        listener.listen()
    except OSError:
        listener.close()
        raise
    return listener


def _is_alive(path: Path) -> bool:
    """Whether somebody listens on a socket file."""
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(_PROBE_S)
        try:
            probe.connect(str(path))
        except (ConnectionRefusedError, FileNotFoundError):
            return False
        except TimeoutError:
            return True
    return True


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
        ws="none",
        timeout_graceful_shutdown=_DRAIN_S,
    )
