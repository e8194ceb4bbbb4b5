"""The link of one language server to its host: found or started, kept in step with the documents."""

import asyncio
import logging
import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator
from contextlib import aclosing, suppress
from typing import Literal

import msgspec

from engine.errors import ForegramError
from engine.host.protocol import (
    BufferSync,
    CloseRequest,
    CompleteEvent,
    CompleteRequest,
    Feedback,
    LineSplice,
    Status,
)
from lsp_server.documents.document import Snapshot
from lsp_server.documents.documents import Documents
from lsp_server.host_address import HostAddress
from lsp_server.host_client import (
    HostClient,
    HostConflictError,
    HostGoneError,
    HostRefusedError,
)

_LOG = logging.getLogger(__name__)
_POLL_S = 0.1
_RETRY_S = 2.0  # before a host that could not be reached is tried again
_LONGEST_RETRY_S = 60.0  # where nobody asks for it
_CONFLICTS = 3
_FAREWELL_S = 1.0
_REQUEST_S = 60.0
_VERSION_BITS = 32
_MOST_OTHER_CHARS = 500_000  # of a document that is not the one completed

FindHost = Callable[[], Awaitable[HostAddress]]
LinkState = Literal["searching", "loading", "ready", "failed", "unreachable"]
Watch = Callable[[Status | None, str], None]


class HostLink:
    """Completions from the host, wherever it is, whenever it comes back.

    `find` finds or starts it. `may_send` says which documents may leave the editor; `path_of` how
    the host is to name them. `watch` hears of the host's status, or of the reason why there is
    none.
    """

    def __init__(
        self,
        documents: Documents,
        find: FindHost,
        *,
        may_send: Callable[[Snapshot], bool],
        path_of: Callable[[str], str],
        watch: Watch,
    ) -> None:
        self.workspace = ""
        self._documents = documents
        self._find = find
        self._may_send = may_send
        self._path_of = path_of
        self._watch = watch
        self._client_id = uuid.uuid4().hex
        self._client: HostClient | None = None
        self._connecting: asyncio.Task[None] | None = None
        self._sent: dict[str, int] = {}
        self._state: LinkState = "searching"
        self._changed = asyncio.Event()
        self._wanted = asyncio.Event()

    @property
    def client_id(self) -> str:
        """The name under which the host knows this server."""
        return self._client_id

    @property
    def state(self) -> LinkState:
        """What is known of the host."""
        return self._state

    def connect(self) -> asyncio.Task[None]:
        """Find the host and wait until it is ready, in the background; once at a time."""
        if self._connecting is None:
            self._connecting = asyncio.create_task(self._connect())
            self._connecting.add_done_callback(self._connected)
        return self._connecting

    async def reconnect(self) -> None:
        """Leave the host for the one that is found now."""
        await self.leave()
        self._enter("searching")
        self.connect()

    async def ready(self, limit_s: float) -> LinkState:
        """Wait while a host is looked for or loads its model, and tell what came of it.

        Who looks is `connect`: before it, the settings do not say yet which host.
        """
        self._wanted.set()
        with suppress(TimeoutError):
            async with asyncio.timeout(limit_s):
                while self._state in ("searching", "loading"):
                    await self._changed.wait()
        return self._state

    async def complete(
        self, request: CompleteRequest, snapshot: Snapshot
    ) -> AsyncGenerator[CompleteEvent]:
        """Bring the host up to date and complete. Raises HostGoneError and HostRefusedError."""
        for _ in range(_CONFLICTS):
            client = self._connected_client()
            message = self._synced(request, snapshot)
            try:
                async with aclosing(client.complete(message)) as events:
                    async for event in events:
                        yield event
                return
            except HostConflictError as conflict:
                self._forget(conflict.uris)
            except HostRefusedError:
                self._forget(sync.uri for sync in message.sync)
                raise
            except HostGoneError:
                self._lost(client)
                raise
        raise HostGoneError("the host does not take the document over")

    async def tell(self, feedback: Feedback) -> None:
        """Tell what became of a completion; a host that is not there misses it."""
        if self._client is not None:
            with suppress(HostGoneError, HostRefusedError):
                await self._client.tell(feedback)

    async def close_document(self, uri: str) -> None:
        """The editor closed a document."""
        if self._sent.pop(uri, None) is not None:
            await self._say(CloseRequest(self._client_id, (uri,)))

    async def leave(self) -> None:
        """The editor goes: the host may forget its documents."""
        if self._connecting is not None:
            self._connecting.cancel()
            self._connecting = None
        await self._say(CloseRequest(self._client_id))
        if self._client is not None:
            await self._client.close()
            self._client = None

    async def _say(self, request: CloseRequest) -> None:
        if self._client is not None:
            with suppress(HostGoneError, HostRefusedError, TimeoutError):
                await asyncio.wait_for(self._client.close_buffers(request), _FAREWELL_S)

    async def _connect(self) -> None:
        """Try until a host is ready, at growing intervals, but soon after it is asked for."""
        delay = _RETRY_S
        while True:
            client = None
            try:
                client = HostClient((await self._find()).client(_REQUEST_S))
                if await self._becomes_ready(client):
                    self._client, client = client, None
                    self._sent.clear()
                    self._enter("ready")
                    return
            except (ForegramError, HostGoneError, HostRefusedError) as error:
                self._enter("unreachable")
                self._watch(None, str(error))
            finally:
                if client is not None:
                    await client.close()
            await asyncio.sleep(_RETRY_S)
            self._wanted.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._wanted.wait(), delay)
            delay = min(2 * delay, _LONGEST_RETRY_S)

    async def _becomes_ready(self, client: HostClient) -> bool:
        """Follow the host while it loads its model."""
        while True:
            status = await client.status()
            self._watch(status, "" if status.problem is None else status.problem.message)
            if status.state == "ready":
                return True
            if status.state != "loading":
                self._enter("failed" if status.state == "failed" else "searching")
                return False
            self._enter("loading")
            await asyncio.sleep(_POLL_S)

    def _enter(self, state: LinkState) -> None:
        """Wake who waits for a change."""
        self._state = state
        self._changed.set()
        self._changed = asyncio.Event()

    def _connected(self, task: asyncio.Task[None]) -> None:
        if self._connecting is task:
            self._connecting = None
        if not task.cancelled() and (error := task.exception()) is not None:
            _LOG.error("the host cannot be looked for", exc_info=error)
            self._enter("unreachable")
            self._watch(None, f"{type(error).__name__}: {error}")

    def _connected_client(self) -> HostClient:
        if self._client is None:
            raise HostGoneError("the host is not there yet")
        return self._client

    def _lost(self, client: HostClient) -> None:
        """The host is gone: look for another, in the background."""
        if self._client is client:
            self._client = None
            self._enter("searching")
            self._watch(None, "the completion host stopped answering")
            self.connect()

    def _forget(self, uris: Iterable[str]) -> None:
        for uri in uris:
            self._sent.pop(uri, None)

    def _synced(self, request: CompleteRequest, snapshot: Snapshot) -> CompleteRequest:
        """Add what the host has to know first; what it will know then."""
        syncs = [self._sync(snapshot), *map(self._sync, self._others(snapshot.uri))]
        return msgspec.structs.replace(
            request,
            client=self._client_id,
            workspace=self.workspace,
            uri=snapshot.uri,
            version=_host_version(snapshot),
            sync=tuple(sync for sync in syncs if sync is not None),
        )

    def _others(self, uri: str) -> Iterator[Snapshot]:
        """The other documents that feed drafts and prompts, the large ones left out."""
        for other in self._documents.uris():
            snapshot = self._documents.snapshot(other)
            if other == uri or not isinstance(snapshot, Snapshot):
                continue
            if _num_chars(snapshot) <= _MOST_OTHER_CHARS and self._may_send(snapshot):
                yield snapshot

    def _sync(self, snapshot: Snapshot) -> BufferSync | None:
        """What brings the host to a snapshot; None where it is there already."""
        uri, version = snapshot.uri, _host_version(snapshot)
        sent, self._sent[uri] = self._sent.get(uri), version
        if sent == version:
            return None
        whole = BufferSync(uri, self._path_of(uri), snapshot.language_id, version, lines=())
        splices = None
        if sent is not None and sent >> _VERSION_BITS == snapshot.opening:
            splices = self._splices(snapshot, sent & ((1 << _VERSION_BITS) - 1))
        if splices is None:
            return msgspec.structs.replace(whole, lines=_sendable(snapshot.lines))
        return msgspec.structs.replace(whole, lines=None, base_version=sent, splices=splices)

    def _splices(self, snapshot: Snapshot, base_version: int) -> tuple[LineSplice, ...] | None:
        """What leads from a version to the snapshot, if that is still the present text."""
        now = self._documents.snapshot(snapshot.uri)
        if not isinstance(now, Snapshot) or _host_version(now) != _host_version(snapshot):
            return None
        splices = self._documents.splices_since(snapshot.uri, base_version)
        if splices is None:
            return None
        return tuple(LineSplice(one.start, one.end, _sendable(one.lines)) for one in splices)


def _host_version(snapshot: Snapshot) -> int:
    """Versions begin anew with each opening of a document; the host's do not."""
    return (snapshot.opening << _VERSION_BITS) + snapshot.version


def _num_chars(snapshot: Snapshot) -> int:
    return sum(map(len, snapshot.lines))


def _sendable(lines: tuple[str, ...]) -> tuple[str, ...]:
    """Halves of surrogate pairs, which JSON cannot carry, become question marks."""
    try:
        "".join(lines).encode()
    except UnicodeEncodeError:
        return tuple(line.encode("utf-8", "replace").decode() for line in lines)
    return lines
