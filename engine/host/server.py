"""The host as a process: where it listens, maintenance, how it drains, and its exit when idle."""

import asyncio
import logging
import math
import resource
import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import uvicorn

from engine.errors import ConfigurationError
from engine.host.app import guarded_app
from engine.host.auth import Application
from engine.host.compat.apis import EnabledApis
from engine.host.connection import CONNECTIONS_LOG, HostConnection
from engine.host.failures import RateLimitedLog
from engine.host.options import HostOptions
from engine.host.principals import Principals
from engine.host.runtime import RuntimeFolder
from engine.host.service import CompletionService
from engine.host.socket_file import identity, listening
from engine.memory import return_free_memory

_WATCH_S = 5.0  # seconds between two rounds of maintenance
_SERVED_S = 60.0  # seconds of service after which a crash is no failed start
_HANDSHAKE_S = 15.0  # seconds for a TLS handshake
_GOODBYE_S = 2.0  # seconds for a TLS shutdown, which a client may leave unanswered
_DRAIN_S = 10  # seconds for all requests to end
_JOBS_END_S = 8.0  # seconds of these until jobs end; later, uvicorn logs a trace for each
_OTHER_FILES = 200  # descriptors for the model, libraries and logs
_FEWEST_CONNECTIONS = 32  # served even where the limit of descriptors leaves room for fewer
_MOST_AWAITED = 2048  # connections in the listen queue; uvicorn's default
_RATE_LIMITED_LOGS = ("uvicorn.error", CONNECTIONS_LOG)  # clients can cause many lines
_log = logging.getLogger("foregram.host")


async def follow_tokens(
    service: CompletionService, principals: Principals, *, is_told: bool = False
) -> None:
    """Read a changed token file, or with `is_told` any, and log an invalid one."""
    try:  # on a thread, as the file system may be slow
        if await asyncio.to_thread(principals.follow, is_told=is_told):
            service.clients.keep_only(principals.every)
            _log.info("the token file was read again")
    except ConfigurationError as error:
        _log.error("the tokens stay as they were: %s", error)


async def keep_up(
    service: CompletionService,
    principals: Principals,
    pause_s: float = _WATCH_S,
    then: Callable[[], None] = lambda: None,
) -> None:
    """Every `pause_s`, forget clients and tokens that are gone, then call `then`."""
    while True:
        await asyncio.sleep(pause_s)
        service.clients.leave_silent()
        await follow_tokens(service, principals)
        await asyncio.to_thread(return_free_memory)
        then()


class HostServer(uvicorn.Server):
    """Runs a service until SIGTERM, `stop` or the idle time ends it."""

    def __init__(
        self,
        service: CompletionService,
        options: HostOptions,
        folder: RuntimeFolder | None = None,
    ) -> None:
        """Create a server, whose record and log `folder` has. Raises ConfigurationError."""
        self._service, self._options, self._folder = service, options, folder
        self._principals = options.principals()
        app = guarded_app(
            service,
            EnabledApis.named(options.apis),
            self._principals,
            is_loopback=options.is_this_users,
            stop=self.stop if options.socket is not None else None,  # others may reach a port
        )
        super().__init__(_config(app, options))
        self._rate_limit = RateLimitedLog()

    def stop(self) -> None:
        """Finish running requests, then return from `serve`."""
        self.should_exit = True

    async def serve(self, _sockets: object = None) -> None:
        """Serve until stopped. Raises ConfigurationError and, at the end, DeviceLostError."""
        engine_thread, loop = self._service.engine_thread, asyncio.get_running_loop()
        with self.capture_signals(), host_listener(self._options) as (listener, token_path):
            if self._options.token_file is not None:
                loop.add_signal_handler(signal.SIGHUP, self._read_tokens)
            engine_thread.start(self.stop)
            # Short, so that the idle time begins soon after the model is loaded.
            pause_s = min(_WATCH_S, (self._options.idle_exit_s or math.inf) / 4)
            look = partial(self._look, listener, token_path, identity(self._options.socket))
            # On a port, the token file is read only upon SIGHUP.
            followed = self._principals if self._options.socket is not None else Principals()
            watch = asyncio.create_task(keep_up(self._service, followed, pause_s, look))
            try:
                await super().serve([listener])
            finally:
                watch.cancel()
                await engine_thread.stop()
                loop.remove_signal_handler(signal.SIGHUP)  # it then ends the process
        if engine_thread.lost is not None:
            raise engine_thread.lost

    def handle_exit(self, sig: int, _frame: object) -> None:
        """End as `stop` does, with learned data saved; uvicorn would raise the signal again."""
        self.force_exit = self.force_exit or (self.should_exit and sig == signal.SIGINT)
        self.should_exit = True

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, with time limits on TLS handshakes and shutdowns, which uvicorn lacks."""
        loop: Any = asyncio.get_running_loop()
        for name in _RATE_LIMITED_LOGS:
            logging.getLogger(name).addFilter(self._rate_limit)
        if self.config.is_ssl:
            limits = {"ssl_handshake_timeout": _HANDSHAKE_S, "ssl_shutdown_timeout": _GOODBYE_S}
            loop.create_server = partial(loop.create_server, **limits)
        try:
            await super().startup(sockets)
        finally:
            loop.__dict__.pop("create_server", None)
        for one in sockets or ():
            one.listen(_MOST_AWAITED)  # asyncio set the smaller `backlog`

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Finish running requests, up to the time limit."""
        timer = asyncio.get_running_loop().call_later(_JOBS_END_S, self._end_rest)
        try:
            await super().shutdown(sockets)
        finally:
            timer.cancel()
            for name in _RATE_LIMITED_LOGS:
                logging.getLogger(name).removeFilter(self._rate_limit)

    def _end_rest(self) -> None:
        self._service.engine_thread.end_jobs()
        for connection in list(self.server_state.connections):
            if isinstance(connection, HostConnection) and connection.is_in_body:
                connection.end("the host stops")

    def _read_tokens(self) -> None:
        reading = follow_tokens(self._service, self._principals, is_told=True)
        self._reading = asyncio.ensure_future(reading)  # asyncio holds only weak references

    def _keep_record(self, folder: RuntimeFolder) -> None:
        with suppress(OSError):
            folder.log.rotate()
        with suppress(OSError):  # a log that cannot be rotated must not stop this
            since = self._service.served_since
            has_served = since is not None and time.monotonic() - since >= _SERVED_S
            record = folder.read_record() if has_served else None
            if record and not record.has_served:
                folder.write_record(msgspec.structs.replace(record, has_served=True))

    def _look(
        self, listener: socket.socket, token_path: Path | None, place: tuple[int, int] | None
    ) -> None:
        """Stop when idle, or if the socket is gone: cleaners of /tmp remove it, and tokens."""
        limit, service = self._options.idle_exit_s, self._service
        if identity(self._options.socket) != place and not service.is_busy:
            _log.warning("the host ends: its socket was removed, so nobody finds it any more")
            self.stop()
        with suppress(OSError):
            if token_path is not None and not token_path.exists():
                self._options.publish_token(*listener.getsockname()[:2])
        if self._folder is not None:
            self._keep_record(self._folder)
        if service.is_busy:
            service.used_at = time.monotonic()
        if limit is not None and time.monotonic() - service.used_at >= limit:
            self.stop()


def _config(app: Application, options: HostOptions) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=HostConnection,
        limit_concurrency=_most_connections(),
        backlog=_OTHER_FILES // 2,  # asyncio accepts so many in one turn, before any is handled
        ssl_certfile=options.tls_cert,
        ssl_keyfile=options.tls_key,
        log_config=None,  # the host's logging formats and limits its lines
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,  # else any local program could choose the address in the log
        ws="none",
        timeout_graceful_shutdown=_DRAIN_S,
    )


def _most_connections() -> int | None:
    """The number that leaves descriptors for files (more get a 503); None if unlimited."""
    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if allowed == resource.RLIM_INFINITY:
        return None
    return max(_FEWEST_CONNECTIONS, allowed - _OTHER_FILES)


@contextmanager
def host_listener(options: HostOptions) -> Iterator[tuple[socket.socket, Path | None]]:
    """Listen, and yield the listener and the file of a port's token. Raises ConfigurationError."""
    if options.socket is not None:
        with listening(options.socket) as listener:
            _log.info("listening on %s", options.socket)
            yield listener, None
        return
    with port_listener(options) as listener:
        address, port = listener.getsockname()[:2]  # the system chooses port 0's number
        with published_token(options, address, port) as path:
            _log.info("listening on %s:%s", options.address, port)
            if path is not None:
                _log.info("clients need the token in %s; those of this user find it there", path)
            yield listener, path


@contextmanager
def published_token(options: HostOptions, address: str, port: int) -> Iterator[Path | None]:
    """Publish a port's token while the block runs."""
    path = options.publish_token(address, port)
    try:
        yield path
    finally:
        if path is not None:
            path.unlink(missing_ok=True)


def port_listener(options: HostOptions) -> socket.socket:
    """Listen on the port. Raises ConfigurationError."""
    family = socket.AF_INET6 if ":" in options.address else socket.AF_INET
    try:
        listener = socket.create_server((options.address, options.port), family=family)
    except OSError as error:
        reason = error.strerror or error
        where = f"{options.address}:{options.port}"
        raise ConfigurationError(f"cannot listen on {where}: {reason}") from error
    # asyncio does not set it here, and a body would wait 40 ms for its head's acknowledgement.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener
