"""The host as a process: sockets, TLS, signals, and an exit when nobody needs it any more."""

import asyncio
import logging
import resource
import signal
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import uvicorn

from engine.errors import ConfigurationError
from engine.host.app import create_app
from engine.host.auth import Application, AuthMiddleware
from engine.host.compat.dialects import DEFAULT, Spoken
from engine.host.loopback import is_loopback
from engine.host.principals import Principals
from engine.host.runtime import RuntimeFolder
from engine.host.service import CompletionService
from engine.host.socket_file import identity, listening
from engine.host.timed_protocol import HANDSHAKE_S, TimedProtocol
from engine.memory import return_free_memory

_SILENT_CLIENT_S = 600.0  # a client that lives speaks more often than this
_WATCH_S = 5.0
_DRAIN_S = 10
_OTHER_FILES = 200  # the model's, libraries', logs
_FEWEST_CONNECTIONS = 32
_MOST_AWAITED = 2048  # connections that nobody has accepted yet
_RUNS_END_S = 8.0  # of these; then whatever still runs ends at its next step
_SERVED_S = 60.0  # a host that has served for so long did not fail at its start
_log = logging.getLogger("foregram.host")


@dataclass(frozen=True, slots=True)
class HostOptions:
    """Where to listen, and who may speak. A socket, or else an address and a port.

    Programs of the same user on this machine find the token of a port in `token_folder`.
    """

    socket: Path | None = None
    address: str = "127.0.0.1"
    port: int = 8012
    token: str | None = None
    token_file: Path | None = None  # of one principal or of several; read again upon SIGHUP
    token_folder: RuntimeFolder | None = None
    tls_cert: Path | None = None
    tls_key: Path | None = None
    idle_exit_s: float | None = None
    apis: Spoken = field(
        default_factory=lambda: Spoken.named(DEFAULT)
    )  # besides the native protocol
    is_insecure: bool = False  # text and token may cross a network unencrypted

    def __post_init__(self) -> None:
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
        self._check_tls()

    @property
    def is_private(self) -> bool:
        """Whether no other machine can reach the host."""
        return self.socket is not None or is_loopback(self.address)

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

    def __init__(
        self,
        service: CompletionService,
        options: HostOptions,
        on_served: Callable[[], None] = lambda: None,
        upkeep: Callable[[], None] = lambda: None,
    ) -> None:
        """Serve by `options`.

        `on_served` is called once, when the host has served for a while, `upkeep` now and then.
        """
        self._service = service
        self._upkeep = upkeep
        self._options = options
        self._on_served: Callable[[], None] | None = on_served
        self._place: tuple[int, int] | None = None  # the socket's file
        # Who reaches a port may be one of many; a private socket is its user's alone.
        stop = self.stop if options.socket is not None else None
        # Its own types are narrower than ASGI's.
        app: Any = create_app(service, stop, options.apis.dialects)
        is_local = options.socket is None and options.is_private
        file = options.token_file
        self._principals = Principals.read(file) if file else Principals.of(options.token)
        guarded = AuthMiddleware(
            *(app, self._principals, is_local, service.limits, options.apis, service.metrics)
        )
        self._server = _Draining(_config(guarded, options), service.end_runs)

    def stop(self) -> None:
        """Finish what is running, then return from `run`."""
        self._server.should_exit = True

    async def run(self) -> None:
        """Serve. Raises ConfigurationError where it cannot listen.

        Raises DeviceLostError in the end where the engine's device was lost.
        """
        with (
            self._server.capture_signals(),
            self._reloading(),
            _listener(self._options) as listener,
        ):
            self._service.start(self.stop)
            self._place = identity(self._options.socket)
            watch = asyncio.create_task(self._watch())
            try:
                await self._server.serve(sockets=[listener])
            finally:
                watch.cancel()
                await self._service.stop()
        if self._service.lost is not None:
            raise self._service.lost

    @contextmanager
    def _reloading(self) -> Iterator[None]:
        """Read the token file again upon SIGHUP."""
        if self._options.token_file is None:
            yield
            return
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGHUP, self._reload)
        try:
            yield
        finally:
            loop.remove_signal_handler(signal.SIGHUP)

    def _reload(self) -> None:
        try:
            self._principals.reload()
        except ConfigurationError as error:
            _log.error("the tokens stay as they were: %s", error)
        else:
            self._service.keep_only(self._principals.every)
            _log.info("the token file was read again")

    async def _watch(self) -> None:
        """Forget silent clients; end once nobody has asked for anything for the idle time.

        A host whose socket is gone ends as well: cleaners of /tmp remove what is old, and the next
        client starts another host beside it.
        """
        limit = self._options.idle_exit_s
        # Often, so that the idle time begins soon after the model is loaded.
        pause_s = _WATCH_S if limit is None else min(_WATCH_S, limit / 4)
        while True:
            await asyncio.sleep(pause_s)
            self._service.leave_silent(_SILENT_CLIENT_S)
            self._upkeep()
            await asyncio.to_thread(return_free_memory)
            if identity(self._options.socket) != self._place and not self._service.is_busy:
                _log.warning("the host ends: its socket was removed, so nobody finds it any more")
                self.stop()
            if self._on_served is not None and self._service.served_s >= _SERVED_S:
                self._on_served()
                self._on_served = None
            if self._service.is_busy:
                self._service.used_at = time.monotonic()
            if limit is not None and time.monotonic() - self._service.used_at >= limit:
                self.stop()


class _Draining(uvicorn.Server):
    """Calls `end_runs` before its timeout: what uvicorn cancels itself it logs with a stack trace."""

    def __init__(self, config: uvicorn.Config, end_runs: Callable[[], None]) -> None:
        super().__init__(config)
        self._end_runs = end_runs

    def handle_exit(self, sig: int, _frame: object) -> None:
        """End as `stop` does, so that what was learned is saved; a second Ctrl-C drains no longer.

        uvicorn's own would raise the signal again in the end.
        """
        self.force_exit = self.force_exit or (self.should_exit and sig == signal.SIGINT)
        self.should_exit = True

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, with a limit to the time of TLS handshakes, which uvicorn has no option for."""
        loop: Any = asyncio.get_running_loop()
        if self.config.is_ssl:
            loop.create_server = partial(loop.create_server, ssl_handshake_timeout=HANDSHAKE_S)
        try:
            await super().startup(sockets)
        finally:
            loop.__dict__.pop("create_server", None)
        for one in sockets or ():
            one.listen(_MOST_AWAITED)  # more than are accepted at once

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Finish what is running, within the time that it may take."""
        timer = asyncio.get_running_loop().call_later(_RUNS_END_S, self._end_runs)
        try:
            await super().shutdown(sockets)
        finally:
            timer.cancel()


@contextmanager
def _listener(options: HostOptions) -> Iterator[socket.socket]:
    """The socket, or the port with its token where clients look for it; logged once it is there.

    Raises ConfigurationError.
    """
    if options.socket is not None:
        with listening(options.socket) as listener:
            _log.info("listening on %s", options.socket)
            yield listener
        return
    with port_listener(options) as listener:
        address, port = listener.getsockname()[:2]  # the port may have been the system's choice
        keeping: AbstractContextManager[Path | None] = nullcontext()
        if options.token and options.token_folder:
            keeping = options.token_folder.kept_port_token(address, port, options.token)
        with keeping as kept:
            _log.info("listening on %s:%s", options.address, port)
            if kept is not None:
                _log.info("clients need the token in %s; those of this user find it there", kept)
            yield listener


def port_listener(options: HostOptions) -> socket.socket:
    """A listener on the port. Raises ConfigurationError."""
    family = socket.AF_INET6 if ":" in options.address else socket.AF_INET
    try:
        listener = socket.create_server((options.address, options.port), family=family)
    except OSError as error:
        reason = error.strerror or error
        where = f"{options.address}:{options.port}"
        raise ConfigurationError(f"cannot listen on {where}: {reason}") from error
    # asyncio sets it for sockets that name TCP alone; without, an answer's body waits 40 ms for the
    # acknowledgement of its head.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def _config(app: Application, options: HostOptions) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=TimedProtocol,
        limit_concurrency=_most_connections(),
        backlog=_OTHER_FILES // 2,  # so many are accepted before any is looked at
        ssl_certfile=options.tls_cert,
        ssl_keyfile=options.tls_key,
        log_level="warning",
        access_log=False,
        server_header=False,
        ws="none",
        timeout_graceful_shutdown=_DRAIN_S,
    )


def _most_connections() -> int | None:
    """As many as leave some descriptors for files; more are answered 503. None: no limit."""
    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if allowed == resource.RLIM_INFINITY:
        return None
    return max(_FEWEST_CONNECTIONS, allowed - _OTHER_FILES)
