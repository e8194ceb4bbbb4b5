"""Searches for a host, follows it while it loads, and searches again when it is lost."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

from engine.errors import ForegramError
from engine.host.protocol import Problem, Status
from lsp_server.host.address import HostAddress
from lsp_server.host.client import HostClient, HostGoneError, HostRefusedError
from lsp_server.reasons import HOST_TROUBLES, WITHDRAWN, Reason

_LOG = logging.getLogger(__name__)
_POLL_S = 0.1  # seconds between status checks of a model that takes seconds or minutes to load
_NEAR_S = 5.0  # seconds by which two estimates of one process's start may differ
READY_S = 20.0  # seconds a request waits for a model to load, if the editor repeats it later
STANDING_S = 900.0  # the same if the editor never repeats it, so that only waiting helps
_RETRY_S = 2.0  # shortest pause in seconds between attempts to reach a host
_LONGEST_RETRY_S = 60.0  # longest additional wait in seconds while no request needs the host
_REQUEST_S = 60.0  # seconds without data, as a busy host queues requests; `HostLink` notices hangs
_DEATHS = 3  # local hosts that may die in one attempt before it fails
_PASSING = ("searching", "loading")  # states that end by themselves
_STOPPED = Problem("", "the model stopped answering")

FindHost = Callable[[], Awaitable[HostAddress]]
LinkState = Literal["searching", "loading", "ready", "failed", "unreachable"]


@dataclass(frozen=True, slots=True)
class LinkReport:
    """The host's state, its status if it sent one, and its problem if it has one."""

    state: LinkState = "searching"
    status: Status | None = None
    problem: Problem | None = None  # without a code if the host does not answer


Watch = Callable[[LinkReport], None]


class HostSearch:
    """Holds a client of a ready host, if there is one. Only `leave` ends the search.

    `find` finds or starts the host; `watch` gets each change; `workspace` is kept on one replica.
    """

    def __init__(
        self, find: FindHost, watch: Watch, workspace: Callable[[], str] = lambda: ""
    ) -> None:
        self.patience_s = STANDING_S
        self.client: HostClient | None = None
        self.is_shared = False  # whether the host listens on a port, where others may use it
        self.process = 0, 0.0  # id of the process ready last, and its start by our monotonic clock
        self._report = LinkReport()
        self._find = find
        self._watch = watch
        self._workspace = workspace
        self._task: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()
        self._wanted = asyncio.Event()

    @property
    def state(self) -> LinkState:
        """The state of the search."""
        return self._report.state

    @property
    def is_adapter(self) -> bool:
        """Whether another program generates for the host."""
        return self._report.status is not None and bool(self._report.status.lost)

    def begin(self) -> None:
        """Search in the background; if a search is running, hasten its next attempt."""
        self._wanted.set()
        if self._task is None or self._task.done():
            if self.state not in _PASSING:
                self._report = LinkReport()
            self._task = asyncio.create_task(self._search())

    async def ready(self, stands: Callable[[], bool] = lambda: True) -> LinkState:
        """Wait while the search runs or the host loads its model, and return the final state.

        It does not `begin` a search, as settings may change. `stands`: whether to keep waiting.
        """
        self._wanted.set()
        with suppress(TimeoutError):
            async with asyncio.timeout(self.patience_s):
                while self.state in _PASSING and stands():
                    await self._changed.wait()
        return self.state

    async def lost(self, client: HostClient) -> None:
        """Search for another host, as this one stopped answering."""
        if self.client is client:
            self.client = None
            self._change(LinkReport(problem=_STOPPED))
            self.begin()
            await client.close()

    async def restart(self) -> None:
        """Leave the host and search anew; requests keep waiting."""
        await self._end()
        self._change(LinkReport())
        self.begin()

    async def leave(self) -> None:
        """Stop the search; waiting requests find no host."""
        self._report = LinkReport("unreachable")
        self._wake()
        await self._end()

    async def _end(self) -> None:
        if self._task is not None:
            self._task.cancel()
            self._task = None  # a new search need not wait for its end
        client, self.client = self.client, None
        if client is not None:
            await client.close()

    async def _search(self) -> None:
        """Try until a host is ready: at growing intervals, or soon if a request needs it."""
        delay = _RETRY_S
        while not await self._attempt():
            await asyncio.sleep(_RETRY_S)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._wanted.wait(), delay)
            delay = min(2 * delay, _LONGEST_RETRY_S)

    async def _attempt(self) -> bool:
        """Find a host, again if a local one dies meanwhile, and return whether it becomes ready."""
        self._wanted.clear()
        try:
            for left in reversed(range(_DEATHS + 1)):
                address = await self._find()
                try:
                    return await self._tried(address)
                except HostGoneError:
                    if address.socket_path is None or not left:
                        raise
        except Exception as error:  # noqa: BLE001 - full disks, odd files: all of it may pass
            _LOG.info("no host yet", exc_info=error)
            self._change(LinkReport("unreachable", problem=_problem(error)))
        return False

    async def _tried(self, address: HostAddress) -> bool:
        self.is_shared = address.socket_path is None
        session = address.session_of(self._workspace()) if self.is_shared else ""
        client = HostClient(address.client(_REQUEST_S, session=session), address.endpoint)
        try:
            return await self._becomes_ready(client)
        finally:
            if client is not self.client:
                await client.close()

    async def _becomes_ready(self, client: HostClient) -> bool:
        while True:
            status = await client.status()
            state: LinkState = "searching" if status.state == "stopping" else status.state
            if state == "ready":
                (pid, former_start), start = self.process, time.monotonic() - status.uptime_s
                if status.pid != pid or abs(start - former_start) > _NEAR_S:
                    self.process = status.pid, start
                self.client = client  # set before `_change` wakes the waiting requests
            self._change(LinkReport(state, status, status.problem))
            if state != "loading":
                return state == "ready"
            await asyncio.sleep(_POLL_S)

    def _change(self, report: LinkReport) -> None:
        self._report = report
        self._wake()
        try:
            self._watch(report)
        except Exception:  # noqa: BLE001 - what is shown must not end the search
            _LOG.exception("the host's state could not be shown")

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


class Retry:
    """Remembers a missing suggestion, and has it requested once when a host is ready.

    After a repetition in vain, none follows until the user types: the request may crash the host.
    """

    def __init__(self, retry: Callable[[], None]) -> None:
        self._retry = retry
        self._num_open = 0
        self._is_due = False
        self._has_retried = False

    def began(self) -> None:
        """Count a request that is being answered."""
        self._num_open += 1

    def ended(self, reason: Reason | None, *, waited: bool, is_ready: bool) -> None:
        """Note an answer. `waited`: no host was ready at the request; `is_ready`: one is now."""
        self._num_open -= 1
        is_outdated = reason is Reason.SUPERSEDED and waited
        if reason in HOST_TROUBLES or is_outdated or (reason in WITHDRAWN and not is_ready):
            self._is_due = True
        elif is_ready and reason not in WITHDRAWN:
            self._is_due = self._has_retried = False
        if is_outdated and is_ready:
            self.host_is_ready()

    def host_is_ready(self) -> None:
        """Have the request repeated, unless another one is in flight."""
        if self._is_due and not self._has_retried and self._num_open == 0:
            self._is_due, self._has_retried = False, True
            self._retry()

    def typed(self) -> None:
        """Note that the text has changed."""
        self._has_retried = False


def _problem(error: Exception) -> Problem:
    if isinstance(error, HostRefusedError):
        return error.problem
    code = error.code if isinstance(error, ForegramError) else ""
    return Problem(code, str(error) or type(error).__name__)
