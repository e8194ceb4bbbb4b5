"""The host as a process: signals, maintenance, and an exit when nobody needs it any more."""

import asyncio
import logging
import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from engine.errors import ConfigurationError
from engine.host.app import create_app
from engine.host.auth import AuthMiddleware
from engine.host.draining_server import DrainingServer
from engine.host.listener import host_listener
from engine.host.options import HostOptions
from engine.host.principals import Principals
from engine.host.runtime import RuntimeFolderError
from engine.host.service import CompletionService
from engine.host.socket_file import identity
from engine.memory import return_free_memory

_WATCH_S = 5.0
_SERVED_S = 60.0  # a host that has served for so long did not fail at its start
_log = logging.getLogger("foregram.host")


class HostServer:
    """Runs a service until SIGTERM, `stop`, or the idle time has passed."""

    def __init__(
        self,
        service: CompletionService,
        options: HostOptions,
        on_served: Callable[[], None] = lambda: None,
        maintain: Callable[[], None] = lambda: None,
    ) -> None:
        """Serve by `options`.

        `on_served` is called once, when the host has served for a while, `maintain` now and then.
        """
        self._service = service
        self._maintain = maintain
        self._options = options
        self._on_served: Callable[[], None] | None = on_served
        self._token_written_ns: int | None = None  # by the file system's clock
        self._follow_token()
        # Many may reach a port; a private socket is its user's alone.
        stop = self.stop if options.socket is not None else None
        # Its own types are narrower than ASGI's.
        app: Any = create_app(service, stop, options.apis)
        file = options.token_file
        self._principals = Principals.read(file) if file else Principals.of(options.token)
        guarded = AuthMiddleware(
            *(app, self._principals, options.is_this_users, service.limits, options.apis),
            metrics=service.metrics,
        )
        self._server = DrainingServer(guarded, options, service.engine_thread.end_jobs)

    def stop(self) -> None:
        """Finish what is running, then return from `run`."""
        self._server.should_exit = True

    async def run(self) -> None:
        """Serve. Raises ConfigurationError where it cannot listen.

        Raises DeviceLostError in the end where the engine's device was lost.
        """
        engine_thread = self._service.engine_thread
        with (
            self._server.capture_signals(),
            self._reloading(),
            host_listener(self._options) as listener,
        ):
            engine_thread.start(self.stop)
            watch = asyncio.create_task(self._watch(listener))
            try:
                await self._server.serve(sockets=[listener])
            finally:
                watch.cancel()
                await engine_thread.stop()
        if engine_thread.lost is not None:
            raise engine_thread.lost

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
            self._service.clients.keep_only(self._principals.every)
            _log.info("the token file was read again")

    def _keep_port_token(self, listener: socket.socket) -> None:
        """Put the token of a port back where clients look for it, if that was removed."""
        folder, token = self._options.token_folder, self._options.token
        if folder is None or token is None or self._options.socket is not None:
            return
        with suppress(OSError, RuntimeFolderError):
            address, port = listener.getsockname()[:2]
            if folder.port_token(address, port) is None:
                folder.keep_port_token(address, port, token)

    def _follow_token(self) -> None:
        """A private host takes the token that lies where its own was."""
        former, file = self._token_written_ns, self._options.token_file
        if self._options.socket is None or file is None:
            return
        with suppress(OSError):
            self._token_written_ns = file.stat().st_mtime_ns
            if former not in (None, self._token_written_ns):
                self._reload()

    async def _watch(self, listener: socket.socket) -> None:
        """Forget silent clients; end once nobody has asked for anything for the idle time.

        A host whose socket is gone ends as well: cleaners of /tmp remove what is old, and the next
        client starts another host beside it. Where they remove its token, the next client makes one; that
        of a port is put back.
        """
        limit, place = self._options.idle_exit_s, identity(self._options.socket)
        # Often, so that the idle time begins soon after the model is loaded.
        pause_s = _WATCH_S if limit is None else min(_WATCH_S, limit / 4)
        while True:
            await asyncio.sleep(pause_s)
            self._service.clients.leave_silent()
            self._maintain()
            await asyncio.to_thread(return_free_memory)
            if identity(self._options.socket) != place and not self._service.is_busy:
                _log.warning("the host ends: its socket was removed, so nobody finds it any more")
                self.stop()
            self._follow_token()
            self._keep_port_token(listener)
            if self._on_served is not None and self._service.served_s >= _SERVED_S:
                self._on_served()
                self._on_served = None
            if self._service.is_busy:
                self._service.used_at = time.monotonic()
            if limit is not None and time.monotonic() - self._service.used_at >= limit:
                self.stop()
