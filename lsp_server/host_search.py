"""The search for a host: found or started, followed while it loads, looked for again when lost."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Literal

from engine.host.protocol import Status
from lsp_server.host_address import HostAddress
from lsp_server.host_client import HostClient

_LOG = logging.getLogger(__name__)
_POLL_S = 0.1
_RETRY_S = 2.0  # before a host that could not be reached is tried again
_LONGEST_RETRY_S = 60.0  # where nobody asks for it
_REQUEST_S = 60.0

FindHost = Callable[[], Awaitable[HostAddress]]
LinkState = Literal["searching", "loading", "ready", "failed", "unreachable"]
Watch = Callable[[Status | None, str], None]


class HostSearch:
    """Keeps a client of a host that is ready, as far as there is one.

    `find` finds or starts it; `watch` hears of its status, or of the reason why there is none.
    Nothing ends the search but `leave`.
    """

    def __init__(self, find: FindHost, watch: Watch) -> None:
        self.client: HostClient | None = None
        self.state: LinkState = "searching"
        self._find = find
        self._watch = watch
        self._task: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()
        self._wanted = asyncio.Event()

    def begin(self) -> None:
        """Search in the background, unless that is under way."""
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._search())

    async def ready(self, limit_s: float) -> LinkState:
        """Wait while a host is looked for or loads its model, and tell what came of it."""
        self._wanted.set()
        with suppress(TimeoutError):
            async with asyncio.timeout(limit_s):
                while self.state in ("searching", "loading"):
                    await self._changed.wait()
        return self.state

    async def lost(self, client: HostClient) -> None:
        """A host stopped answering: look for another."""
        if self.client is client:
            self.client = None
            self._enter("searching", None, "the completion host stopped answering")
            self.begin()
            await client.close()

    async def leave(self) -> None:
        """Search no longer."""
        if self._task is not None:
            self._task.cancel()
            self._task = None  # it ends later; a new search need not wait for that
        self.state = "searching"
        client, self.client = self.client, None
        if client is not None:
            await client.close()

    async def _search(self) -> None:
        """Try until a host is ready, at growing intervals, but soon after it is asked for."""
        delay = _RETRY_S
        while not await self._attempt():
            await asyncio.sleep(_RETRY_S)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._wanted.wait(), delay)
            delay = min(2 * delay, _LONGEST_RETRY_S)

    async def _attempt(self) -> bool:
        self._wanted.clear()
        client: HostClient | None = None
        try:
            address = await self._find()
            client = HostClient(address.client(_REQUEST_S), address.place)
            if await self._becomes_ready(client):
                client = None  # it is kept
                return True
        except Exception as error:  # noqa: BLE001 - full disks, odd files: all may pass
            _LOG.info("no host yet", exc_info=error)
            self._enter("unreachable", None, str(error) or type(error).__name__)
        finally:
            if client is not None:
                await client.close()
        return False

    async def _becomes_ready(self, client: HostClient) -> bool:
        """Follow the host while it loads its model."""
        while True:
            status = await client.status()
            state: LinkState = "searching" if status.state == "stopping" else status.state
            if state == "ready":
                self.client = client  # before those who wait are woken
            self._enter(state, status, "" if status.problem is None else status.problem.message)
            if state != "loading":
                return state == "ready"
            await asyncio.sleep(_POLL_S)

    def _enter(self, state: LinkState, status: Status | None, reason: str) -> None:
        """Wake who waits for a change, and tell who watches."""
        self.state = state
        self._changed.set()
        self._changed = asyncio.Event()
        try:
            self._watch(status, reason)
        except Exception:  # noqa: BLE001 - what is shown must not end the search
            _LOG.exception("the host's state could not be shown")
