"""The documents that the host holds for this server: brought up to date, withdrawn and closed."""

import asyncio
import logging
import time
import uuid
from collections.abc import Coroutine, Iterator
from contextlib import suppress

from engine.host.protocol import UNKNOWN_CLIENT, CloseRequest, Problem, SyncRequest
from lsp_server.documents.document import Snapshot
from lsp_server.host.client import HostClient, HostGoneError, HostRefusedError
from lsp_server.host.search import HostSearch
from lsp_server.host.sync import HostSync, Syncs
from lsp_server.workspace import Workspace

_LOG = logging.getLogger(__name__)
_CLOSE_S = 1.0  # seconds to close documents, as the host forgets a silent client anyway
_JUDGE_S = 1.0  # seconds after which a request first re-checks some documents on the host
_JUDGED_AT_ONCE = 8  # documents; each check reads its folders, and keys wait meanwhile


class HeldDocuments:
    """Keeps a host's documents in step. The host has them under a name of this server."""

    def __init__(self, workspace: Workspace, search: HostSearch, name: str) -> None:
        self.known_as = name
        self.in_step = asyncio.Lock()  # held until the host acknowledges the documents sent
        self.sync = HostSync(workspace)
        self._workspace = workspace
        self._search = search
        self._replica = ""  # the replica that holds the documents
        self._former: list[str] = []  # earlier names under which hosts may hold documents
        self._holder = search.process  # the host that holds the documents
        self._judged_at = time.monotonic()

    def follow(self) -> None:
        """Begin with nothing if another host has been found."""
        if self._holder != self._search.process:
            self._holder, self.sync = self._search.process, HostSync(self._workspace)

    async def bring(self, snapshot: Snapshot) -> None:
        """Bring the host up to date between requests; if that fails, the next request does."""
        async with self.in_step:
            client = self._search.client
            if client is None or not self._may_go(snapshot):
                return
            syncs = self.sync.syncs(snapshot)
            if not syncs.buffers or self.sync.is_past(snapshot):
                return
            try:
                await client.sync(SyncRequest(self.known_as, self._workspace.root, syncs.buffers))
                self.taken(client, syncs)
            except HostRefusedError as error:
                self.refused(client, error.problem)
                if not error.problem.uris:
                    _LOG.info("the host refused documents: %s", error.problem.message)
            except HostGoneError as error:
                _LOG.info("documents could not be sent ahead: %s", error)

    def _may_go(self, snapshot: Snapshot) -> bool:
        """Whether a document is still open, and may leave the editor, then and now."""
        now = self._workspace.documents.snapshot(snapshot.uri)
        if not isinstance(now, Snapshot) or now.opening != snapshot.opening:
            return False
        return all(map(self._workspace.permissions.may_send, (snapshot, now)))

    async def retract(self) -> tuple[str, ...]:
        """Have the host close documents that are closed or hidden, and return their URIs."""
        unwanted: list[str] = []
        for _ in range(0, len(self.sync), _JUDGED_AT_ONCE):
            unwanted += await self._retract_some()
            await asyncio.sleep(0)  # let other pending work go first
        return tuple(unwanted)

    async def retract_soon(self) -> None:
        """Have it close unwanted ones of some documents, unless some have just been judged."""
        if time.monotonic() - self._judged_at > _JUDGE_S:
            await self._retract_some()

    async def _retract_some(self) -> tuple[str, ...]:
        self._judged_at = time.monotonic()
        if unwanted := self.sync.unwanted(_JUDGED_AT_ONCE):
            self.sync.closed(unwanted)
            if not await self._close(CloseRequest(self.known_as, unwanted)):
                self.sync.forget(unwanted)  # it did not receive the request
        return unwanted

    def taken(self, client: HostClient, syncs: Syncs) -> None:
        """Note that the host has accepted documents; a different replica has only these."""
        if self._replica not in ("", client.replica):
            self._begin_anew()
        else:
            self.sync.taken(syncs)
        self._replica = client.replica

    def refused(self, client: HostClient, problem: Problem) -> None:
        """Note whether the host lacks the documents that it names, or all of them."""
        if not problem.uris:
            return
        if problem.code == UNKNOWN_CLIENT or client.replica != self._replica:
            self._begin_anew()
            self._replica = client.replica
        else:
            self.sync.forget(problem.uris)

    async def lost(self, client: HostClient) -> None:
        """Search for another host, as this one stopped answering."""
        if self._replica:  # another replica may hold outdated documents under this name
            self._begin_anew()
            self._replica = ""
        await self._search.lost(client)

    def _begin_anew(self) -> None:
        """Send all anew under a new name, as a replica may hold outdated text under the former."""
        self.sync.forget()
        self._former.append(self.known_as)
        self.known_as = uuid.uuid4().hex

    def closing(self) -> Iterator[Coroutine[None, None, bool]]:
        """Yield requests that close documents under former names, which no completion uses."""
        while self._former:
            yield self._close(CloseRequest(self._former.pop()))

    async def leave(self) -> None:
        """Have the host close all documents, so that it holds none."""
        for closing in self.closing():
            await closing
        await self._close(CloseRequest(self.known_as))
        self.sync = HostSync(self._workspace)

    async def _close(self, request: CloseRequest) -> bool:
        if self._search.client is not None:
            with suppress(HostGoneError, HostRefusedError, TimeoutError):
                await asyncio.wait_for(self._search.client.close_buffers(request), _CLOSE_S)
                return True
        return False
