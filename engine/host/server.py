"""The host as a process: signals, maintenance, and its exit when idle."""

import asyncio
import logging
import math
import signal
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial

import msgspec

from engine.errors import ConfigurationError
from engine.host.app import guarded_app
from engine.host.draining_server import DrainingServer, host_listener
from engine.host.options import HostOptions
from engine.host.principals import Principals
from engine.host.runtime import RuntimeFolder, RuntimeFolderError
from engine.host.service import CompletionService
from engine.host.socket_file import identity
from engine.memory import return_free_memory

_WATCH_S = 5.0  # seconds between two rounds of maintenance
_SERVED_S = 60.0  # seconds of service after which a crash is no failed start
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


class HostServer:
    """Runs a service until SIGTERM, `stop` or the idle time ends it."""

    def __init__(
        self,
        service: CompletionService,
        options: HostOptions,
        folder: RuntimeFolder | None = None,
    ) -> None:
        """Create a server, whose record and log `folder` has. Raises ConfigurationError."""
        self._service, self._options, self._folder = service, options, folder
        # Others may reach a port; only its user reaches a private socket.
        stop = self.stop if options.socket is not None else None
        file = options.token_file
        self._principals = Principals.read(file) if file else Principals.of(options.token)
        guarded = guarded_app(
            service,
            options.apis,
            self._principals,
            is_loopback=options.is_this_users,
            stop=stop,
        )
        self._server = DrainingServer(guarded, options, service.engine_thread.end_jobs)

    def stop(self) -> None:
        """Finish running requests, then return from `run`."""
        self._server.should_exit = True

    async def run(self) -> None:
        """Serve until stopped. Raises ConfigurationError and, at the end, DeviceLostError."""
        engine_thread, loop = self._service.engine_thread, asyncio.get_running_loop()
        with self._server.capture_signals(), host_listener(self._options) as listener:
            if self._options.token_file is not None:
                loop.add_signal_handler(signal.SIGHUP, self._read_tokens)
            engine_thread.start(self.stop)
            # Short, so that the idle time begins soon after the model is loaded.
            pause_s = min(_WATCH_S, (self._options.idle_exit_s or math.inf) / 4)
            look = partial(self._look, listener, identity(self._options.socket))
            # On a port, the token file is read only upon SIGHUP.
            followed = self._principals if self._options.socket is not None else Principals()
            watch = asyncio.create_task(keep_up(self._service, followed, pause_s, look))
            try:
                await self._server.serve(sockets=[listener])
            finally:
                watch.cancel()
                await engine_thread.stop()
                loop.remove_signal_handler(signal.SIGHUP)  # it then ends the process
        if engine_thread.lost is not None:
            raise engine_thread.lost

    def _read_tokens(self) -> None:
        reading = follow_tokens(self._service, self._principals, is_told=True)
        self._reading = asyncio.ensure_future(reading)  # asyncio holds only weak references

    def _keep_port_token(self, listener: socket.socket) -> None:
        folder, token = self._options.token_folder, self._options.token
        if folder is None or token is None:
            return
        with suppress(OSError, RuntimeFolderError):
            address, port = listener.getsockname()[:2]
            if folder.port_token(address, port) is None:
                folder.keep_port_token(address, port, token)

    def _keep_record(self, folder: RuntimeFolder) -> None:
        """Keep the log short, and record that the host has served: a crash is no failed start."""
        with suppress(OSError):
            folder.log.rotate()
        with suppress(OSError):  # a log that cannot be rotated must not stop this
            since = self._service.served_since
            has_served = since is not None and time.monotonic() - since >= _SERVED_S
            record = folder.read_record() if has_served else None
            if record and not record.has_served:
                folder.write_record(msgspec.structs.replace(record, has_served=True))

    def _look(self, listener: socket.socket, place: tuple[int, int] | None) -> None:
        """Stop after the idle time, or if the socket is gone.

        Cleaners of /tmp remove old sockets, and the next client then starts another host. If they
        remove the socket's token, the next client makes one; a port's token is published again.
        """
        limit, service = self._options.idle_exit_s, self._service
        if identity(self._options.socket) != place and not service.is_busy:
            _log.warning("the host ends: its socket was removed, so nobody finds it any more")
            self.stop()
        self._keep_port_token(listener)
        if self._folder is not None:
            self._keep_record(self._folder)
        if service.is_busy:
            service.used_at = time.monotonic()
        if limit is not None and time.monotonic() - service.used_at >= limit:
            self.stop()
