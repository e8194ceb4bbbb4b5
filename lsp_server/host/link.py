"""The link of one language server to its host: completions, feedback, documents kept in step."""

import asyncio
import logging
import time
import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterable
from contextlib import aclosing, suppress
from typing import Any, TypeVar

import msgspec

from engine.host.protocol import (
    UNKNOWN_CLIENT,
    CloseRequest,
    CompleteEvent,
    CompleteRequest,
    Failed,
    Feedback,
    Problem,
    SyncRequest,
)
from engine.request import Snippet
from lsp_server.documents.document import Snapshot
from lsp_server.documents.documents import Documents
from lsp_server.host.client import (
    HostAbsentError,
    HostClient,
    HostConflictError,
    HostGoneError,
    HostQuotaError,
    HostRefusedError,
)
from lsp_server.host.search import FindHost, HostSearch, LinkState, Watch
from lsp_server.host.sync import FeedbackBatch, HostSync, Syncs, host_version

_LOG = logging.getLogger(__name__)
_Outcome = TypeVar("_Outcome")
SendableSnippets = Callable[[], Awaitable[tuple[Snippet, ...]]]
_ATTEMPTS = 3  # a host may have forgotten the documents, or been replaced
_CLOSE_S = 1.0
_WATCH_S = 3.0  # between looks at a host that has not answered a request
_ACCEPT_S = 1.0  # that an unwanted request goes on until it is accepted
_JUDGE_S = 1.0  # after this long, a request first judges some of what the host holds again
_JUDGED_AT_ONCE = 8  # documents: each costs a look at its folders, and keys wait meanwhile
_SHORT_WAIT_S = 2.0  # that a request waits itself, where the host has told to
_PAST = Problem("superseded", "the host holds a newer state of the document")
_HIDDEN = Problem("hidden_document", "the document may no longer leave the editor")
# Refusals of a host that is about to be gone, or has been replaced by one with another token.
_ENDINGS = ("device_lost", "stopping", "wrong_token")
READY_S = 20.0  # how long a request waits for a model to load, if the editor repeats it later
STANDING_S = 900.0  # and if the editor does not: nothing else would bring its answer


class HostLink:
    """Completions from the host, wherever it is, whenever it comes back.

    `find` finds or starts it. `may_send` says which documents may leave the editor; `path_of`
    names them for the host. `watch` is called with each change of the host's state.
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
        self.patience_s = STANDING_S
        self.quota = ""  # what the host said last, when it did no more for this user
        self.failure = ""  # and when it could not complete
        self.client_id = uuid.uuid4().hex  # of this server
        self.known_as = self.client_id  # by the host
        self._search = HostSearch(find, watch, lambda: self.workspace)
        self._replica = ""  # which of several hosts holds the documents
        self._former: list[str] = []  # names of this server, under which others hold documents
        self._tasks: set[asyncio.Task[Any]] = set()  # asyncio itself holds them weakly
        self._in_step = asyncio.Lock()  # held until the host has said that it holds what was sent
        self._holder = 0  # which of the hosts that were ready holds the documents
        self._may_send = may_send
        self._sync = HostSync(documents, may_send, path_of)
        self._judged_at = time.monotonic()
        self._feedback = FeedbackBatch(self._send)

    @property
    def is_shared(self) -> bool:
        """Whether others may use the host, too."""
        return self._search.is_shared

    @property
    def state(self) -> LinkState:
        """What is known of the host."""
        return self._search.state

    def connect(self) -> None:
        """Look for the host in the background."""
        self._search.begin()

    async def reconnect(self) -> None:
        """Leave the host for the one that is found now."""
        await self._close(CloseRequest(self.known_as))
        self._sync.leave()
        await self._search.restart()

    async def ready(self, stands: Callable[[], bool] = lambda: True) -> LinkState:
        """Wait while a host is searched for or loads its model; the state in which that ends.

        `connect` begins the search: before it, the settings may still change. `stands` says whether
        the request is still worth the wait.
        """
        return await self._search.ready(self.patience_s, stands)

    async def complete(
        self,
        request: CompleteRequest,
        snapshot: Snapshot,
        repository: SendableSnippets | None = None,
    ) -> AsyncGenerator[CompleteEvent]:
        """Bring the host up to date and complete. Raises HostGoneError and HostRefusedError.

        `repository` says, when the request goes out, what that shows of other files.
        """
        for attempt in range(_ATTEMPTS):
            client = await self._client()
            watch = self._begin(self._watch(client))
            try:
                last: CompleteEvent | None = None
                async with aclosing(
                    await self._begun(client, request, snapshot, repository)
                ) as events:
                    async for last in events:
                        yield last
                await self._note_end(client, last)
                return
            except HostConflictError:
                continue  # it gets those documents whole
            except HostAbsentError:  # it ended between two requests: another may take its place
                await self._lost(client)
            except HostGoneError:
                await self._lost(client)
                raise
            except HostQuotaError as error:
                await self._wait_as_told(error, is_last=attempt == _ATTEMPTS - 1)
            except HostRefusedError as error:
                if error.problem.code not in _ENDINGS:
                    raise
                await self._lost(client)
            finally:
                watch.cancel()
        raise HostGoneError(f"the host rejected the document after {_ATTEMPTS} attempts")

    async def _watch(self, client: HostClient) -> None:
        """Leave a host that stands still: one that only takes long says what it is doing."""
        while True:
            await asyncio.sleep(_WATCH_S)
            if client is not self._search.client:
                return
            with suppress(HostRefusedError):
                try:
                    await client.status()
                except HostGoneError:
                    await self._search.lost(client)

    async def _note_end(self, client: HostClient, last: CompleteEvent | None) -> None:
        """Remember why a completion failed; a host may be about to be gone."""
        self.failure = last.message if isinstance(last, Failed) else ""
        if isinstance(last, Failed) and last.code in _ENDINGS:
            await self._lost(client)

    async def _wait_as_told(self, error: HostQuotaError, *, is_last: bool) -> None:
        """Wait where that is short. Raises the error where it is not worth it."""
        self.quota = error.problem.message
        if is_last or error.retry_after_s > _SHORT_WAIT_S:
            raise error
        await asyncio.sleep(error.retry_after_s)

    async def sync(self, snapshot: Snapshot) -> None:
        """Bring the host up to date while nobody waits; if that fails, the next request does it."""
        async with self._in_step:
            client, syncs = self._search.client, self._sync.syncs(snapshot)
            if client is None or not syncs.buffers or self._sync.is_past(snapshot):
                return
            try:
                await client.sync(SyncRequest(self.known_as, self.workspace, syncs.buffers))
                self._taken(client, syncs)
            except HostConflictError as error:
                self._conflicts(client, error.problem)
            except (HostGoneError, HostRefusedError) as error:
                _LOG.info("documents could not be sent ahead: %s", error)

    def tell(self, feedback: Feedback) -> None:
        """Report what became of a completion, with the next request or soon."""
        self._feedback.add(feedback)

    async def _send(self, feedback: Feedback) -> None:
        if self._search.client is not None:
            with suppress(HostGoneError, HostRefusedError):
                told = msgspec.structs.replace(feedback, client=self.known_as)
                await self._search.client.send(told)

    async def close_documents(self, uris: Iterable[str]) -> None:
        """The editor closed documents."""
        if known := tuple(filter(self._sync.knows, uris)):
            await self._withdraw(known)

    def knows(self, uri: str) -> bool:
        """Whether the host may hold a document."""
        return self._sync.knows(uri)

    async def retract(self) -> tuple[str, ...]:
        """Have the host close what it may no longer hold; the URIs of those documents."""
        unwanted: list[str] = []
        for _ in range(0, self._sync.num_sent, _JUDGED_AT_ONCE):
            unwanted += await self._retract_some()
            await asyncio.sleep(0)  # what arrived meanwhile goes first
        return tuple(unwanted)

    async def _retract_some(self) -> tuple[str, ...]:
        self._judged_at = time.monotonic()
        unwanted = self._sync.unwanted(_JUDGED_AT_ONCE)
        if unwanted:
            await self._withdraw(unwanted)
        return unwanted

    async def _withdraw(self, uris: tuple[str, ...]) -> None:
        self._sync.closed(uris)
        if not await self._close(CloseRequest(self.known_as, uris)):
            self._sync.forget(uris)  # it did not receive that

    async def leave(self) -> None:
        """The editor exits: the host may close its documents."""
        await self._feedback.flush()
        for name in (*self._former, self.known_as):
            await self._close(CloseRequest(name))
        await self._search.leave()

    async def _begun(
        self,
        client: HostClient,
        request: CompleteRequest,
        snapshot: Snapshot,
        repository: SendableSnippets | None,
    ) -> AsyncGenerator[CompleteEvent]:
        """The events of one attempt, once the host has accepted it.

        The request may have waited for long, so its document is judged again, and what it shows.
        Whoever cancels it before it is accepted leaves it to go out: what the host holds would not
        be known.
        """
        while self._former:  # nothing that was left under these names is being completed any more
            self._begin(self._close(CloseRequest(self._former.pop())))
        if time.monotonic() - self._judged_at > _JUDGE_S:
            await self._retract_some()
        shown = () if repository is None else await repository()
        request = msgspec.structs.replace(request, repository=shown)
        await self._in_step.acquire()
        opening = self._begin(self._accepted(client, request, snapshot))
        try:
            return await asyncio.shield(opening)
        except asyncio.CancelledError:
            opening.add_done_callback(self._unwanted)
            asyncio.get_running_loop().call_later(_ACCEPT_S, opening.cancel)
            raise

    async def _accepted(
        self, client: HostClient, request: CompleteRequest, snapshot: Snapshot
    ) -> AsyncGenerator[CompleteEvent]:
        """The events of a request that the host has accepted; it holds what came along."""
        try:
            if client is not self._search.client:
                raise HostAbsentError("the host has just gone")
            if not self._may_send(snapshot):
                raise HostRefusedError(_HIDDEN)
            if self._sync.is_past(snapshot):
                raise HostRefusedError(_PAST)
            syncs = self._sync.syncs(snapshot)
            events = await client.begin(self._message(request, snapshot, syncs))
            self._taken(client, syncs)
        except HostConflictError as error:
            self._conflicts(client, error.problem)
            raise
        finally:
            self._in_step.release()
        return events

    def _message(
        self, request: CompleteRequest, snapshot: Snapshot, syncs: Syncs
    ) -> CompleteRequest:
        return msgspec.structs.replace(
            request,
            client=self.known_as,
            workspace=self.workspace,
            uri=snapshot.uri,
            version=host_version(snapshot),
            sync=syncs.buffers,
            feedback=self._feedback.take(),
            # A cell that is not sent, as it holds a secret, or is too large, is in no prompt.
            above=tuple(cell for cell in request.above if self._sync.brings(syncs, cell.uri)),
            below=tuple(cell for cell in request.below if self._sync.brings(syncs, cell.uri)),
        )

    def _unwanted(self, opening: asyncio.Task[AsyncGenerator[CompleteEvent]]) -> None:
        if not opening.cancelled() and opening.exception() is None:
            self._begin(opening.result().aclose())

    def _taken(self, client: HostClient, syncs: Syncs) -> None:
        """The host has accepted documents; if it is another of several, it has these alone."""
        if self._replica and client.replica != self._replica:
            self._forgotten(client)
        else:
            self._replica = client.replica
            self._sync.taken(syncs)

    def _conflicts(self, client: HostClient, problem: Problem) -> None:
        """The host does not hold what it should: what it names, or nothing."""
        if problem.code == UNKNOWN_CLIENT or client.replica != self._replica:
            self._forgotten(client)
        else:
            self._sync.forget(problem.uris)

    def _forgotten(self, client: HostClient) -> None:
        """The host holds nothing of this client.

        Where it is one of several, it gets everything under another name: what was left under the
        former one, there or elsewhere, is as old as the move, and is closed with the next request.
        """
        self._sync.forget()
        if client.replica:
            self._former.append(self.known_as)
            self.known_as, self._replica = uuid.uuid4().hex, client.replica

    def _begin(self, work: Coroutine[None, None, _Outcome]) -> asyncio.Task[_Outcome]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _client(self) -> HostClient:
        if self._search.client is None and await self.ready() != "ready":
            raise HostGoneError("the host is not there")
        if self._search.client is None:
            raise HostGoneError("the host has just gone")
        if self._holder != self._search.num_hosts:
            self._sync.leave()
        self._holder = self._search.num_hosts
        return self._search.client

    async def _lost(self, client: HostClient) -> None:
        if self._replica:  # another may hold what it had before that one
            self._sync.leave()
            self.known_as, self._replica = uuid.uuid4().hex, ""
        await self._search.lost(client)

    async def _close(self, request: CloseRequest) -> bool:
        """Have the host close documents; whether it received that."""
        if self._search.client is not None:
            with suppress(HostGoneError, HostRefusedError, TimeoutError):
                await asyncio.wait_for(self._search.client.close_buffers(request), _CLOSE_S)
                return True
        return False
