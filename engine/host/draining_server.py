"""The HTTP server of a host: what it listens on, and how what is running comes to its end."""

import asyncio
import logging
import resource
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import uvicorn

from engine.errors import ConfigurationError
from engine.host.auth import Application
from engine.host.connection import CONNECTIONS_LOG, HostConnection
from engine.host.failures import RateLimitedMessages
from engine.host.options import HostOptions
from engine.host.socket_file import listening

_HANDSHAKE_S = 15.0  # for TLS
_GOODBYE_S = 2.0  # of TLS, which a client may leave unanswered
_DRAIN_S = 10
_JOBS_END_S = 8.0  # of these; then whatever still runs ends at its next step
_OTHER_FILES = 200  # the model's, libraries', logs
_FEWEST_CONNECTIONS = 32
_MOST_AWAITED = 2048  # connections that nobody has accepted yet
# Any client can cause as many lines of these as it likes.
_RATE_LIMITED_LOGS = ("uvicorn.error", CONNECTIONS_LOG)
_log = logging.getLogger("foregram.host")


class DrainingServer(uvicorn.Server):
    """Ends what is left before its timeout: what uvicorn cancels itself it logs with a stack trace.

    Calls `end_jobs`, and ends the connections whose requests are not all there.
    """

    def __init__(
        self, app: Application, options: HostOptions, end_jobs: Callable[[], None]
    ) -> None:
        super().__init__(_config(app, options))
        self._rate_limit = RateLimitedMessages()
        self._end_jobs = end_jobs

    def handle_exit(self, sig: int, _frame: object) -> None:
        """End as `stop` does, so that what was learned is saved; a second Ctrl-C drains no longer.

        uvicorn's own would raise the signal again in the end.
        """
        self.force_exit = self.force_exit or (self.should_exit and sig == signal.SIGINT)
        self.should_exit = True

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, with limits to the time of TLS handshakes and goodbyes: uvicorn has none."""
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
            one.listen(_MOST_AWAITED)  # more than are accepted at once

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Finish what is running, within the time that it may take."""
        timer = asyncio.get_running_loop().call_later(_JOBS_END_S, self._end_rest)
        try:
            await super().shutdown(sockets)
        finally:
            timer.cancel()
            for name in _RATE_LIMITED_LOGS:
                logging.getLogger(name).removeFilter(self._rate_limit)

    def _end_rest(self) -> None:
        self._end_jobs()
        for connection in list(self.server_state.connections):
            if isinstance(connection, HostConnection):
                connection.end_unfinished()


def _config(app: Application, options: HostOptions) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=HostConnection,
        limit_concurrency=_most_connections(),
        backlog=_OTHER_FILES // 2,  # so many are accepted before any is looked at
        ssl_certfile=options.tls_cert,
        ssl_keyfile=options.tls_key,
        log_config=None,  # its lines are the host's: with their time, and not too many
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,  # else anybody on this machine names the address that the log has
        ws="none",
        timeout_graceful_shutdown=_DRAIN_S,
    )


def _most_connections() -> int | None:
    """As many as leave some descriptors for files; more are answered 503. None: no limit."""
    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if allowed == resource.RLIM_INFINITY:
        return None
    return max(_FEWEST_CONNECTIONS, allowed - _OTHER_FILES)


@contextmanager
def host_listener(options: HostOptions) -> Iterator[socket.socket]:
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
        with kept_token(options, address, port) as kept:
            _log.info("listening on %s:%s", options.address, port)
            if kept is not None:
                _log.info("clients need the token in %s; those of this user find it there", kept)
            yield listener


def kept_token(
    options: HostOptions, address: str, port: int
) -> AbstractContextManager[Path | None]:
    """Have this user's programs find the token of a port that has none of a file."""
    if options.token and options.token_folder:
        return options.token_folder.kept_port_token(address, port, options.token)
    return nullcontext()


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
