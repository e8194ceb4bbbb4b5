"""The HTTP server of a host: its listeners, and how it drains running requests."""

import asyncio
import logging
import resource
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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

_HANDSHAKE_S = 15.0  # seconds for a TLS handshake
_GOODBYE_S = 2.0  # seconds for a TLS shutdown, which a client may leave unanswered
_DRAIN_S = 10  # seconds for all requests to end
_JOBS_END_S = 8.0  # seconds of these after which running jobs end at their next step
_OTHER_FILES = 200  # descriptors for the model, libraries and logs
_FEWEST_CONNECTIONS = 32
_MOST_AWAITED = 2048  # connections in the listen queue
# Any client can cause any number of lines in these logs.
_RATE_LIMITED_LOGS = ("uvicorn.error", CONNECTIONS_LOG)
_log = logging.getLogger("foregram.host")


class DrainingServer(uvicorn.Server):
    """Ends remaining requests before uvicorn's timeout, which would log a stack trace for each.

    It calls `end_jobs`, and ends connections with incomplete requests.
    """

    def __init__(
        self, app: Application, options: HostOptions, end_jobs: Callable[[], None]
    ) -> None:
        super().__init__(_config(app, options))
        self._rate_limit = RateLimitedMessages()
        self._end_jobs = end_jobs

    def handle_exit(self, sig: int, _frame: object) -> None:
        """End as `stop` does, so that learned data is saved; a second Ctrl-C stops draining.

        uvicorn's own handler would raise the signal again at the end.
        """
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
        self._end_jobs()
        for connection in list(self.server_state.connections):
            if isinstance(connection, HostConnection):
                connection.end_unfinished()


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
def host_listener(options: HostOptions) -> Iterator[socket.socket]:
    """Listen on the socket or port, and publish a port's token. Raises ConfigurationError."""
    if options.socket is not None:
        with listening(options.socket) as listener:
            _log.info("listening on %s", options.socket)
            yield listener
        return
    with port_listener(options) as listener:
        address, port = listener.getsockname()[:2]  # the system chooses port 0's number
        with kept_token(options, address, port) as kept:
            _log.info("listening on %s:%s", options.address, port)
            if kept is not None:
                _log.info("clients need the token in %s; those of this user find it there", kept)
            yield listener


@contextmanager
def kept_token(options: HostOptions, address: str, port: int) -> Iterator[Path | None]:
    """Publish a port's token to this user's programs, unless it comes from a token file."""
    if not (options.token and options.token_folder):
        yield None
        return
    path = options.token_folder.keep_port_token(address, port, options.token)
    try:
        yield path
    finally:
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
    # asyncio sets it only for sockets created as IPPROTO_TCP. Without it, an answer's body waits
    # 40 ms for the acknowledgement of its head.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener
