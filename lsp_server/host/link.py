"""One language server's link to its host: completions, feedback and synchronized documents."""

import asyncio
import logging
import time
import uuid
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import aclosing, suppress
from functools import partial
from typing import Any, TypeVar

from engine.config import Sampling, StopRules
from engine.host.protocol import (
    MAX_FEEDBACK,
    UNKNOWN_CLIENT,
    CloseRequest,
    CompleteEvent,
    CompleteRequest,
    Failed,
    Feedback,
    FeedbackKind,
    Problem,
    SyncRequest,
)
from engine.request import Done, EditTask, Snippet
from lsp_server.documents.anchor import Anchor
from lsp_server.documents.document import Snapshot
from lsp_server.host.client import (
    HostAbsentError,
    HostClient,
    HostGoneError,
    HostQuotaError,
    HostRefusedError,
)
from lsp_server.host.search import FindHost, HostSearch, Watch
from lsp_server.host.sync import HostSync, Syncs, host_version
from lsp_server.workspace import Workspace
from lsp_server.workspace_files import WorkspaceFiles

_LOG = logging.getLogger(__name__)
_Outcome = TypeVar("_Outcome")
_Build = Callable[..., CompleteRequest]  # takes arguments known only when the request goes out
_Edit = Callable[[], EditTask | None]
_ATTEMPTS = 3  # a host may have forgotten the documents, or been replaced
_CLOSE_S = 1.0  # seconds to close documents, as the host forgets a silent client anyway
_WATCH_S = 3.0  # seconds between status checks while a request has no answer
_ACCEPT_S = 1.0  # seconds that a cancelled request may take to be accepted
_JUDGE_S = 1.0  # seconds after which a request first re-checks some documents on the host
_JUDGED_AT_ONCE = 8  # documents; each check reads its folders, and keys wait meanwhile
_MOMENT_MS = 300.0  # milliseconds in which a quick host reads a whole prompt
ANY_LENGTH = StopRules()
_SHORT_WAIT_S = 2.0  # longest pause in seconds that a request waits out after a 429
_PAST = Problem("superseded", "the host holds a newer state of the document")
_HIDDEN = Problem("hidden_document", "the document may no longer leave the editor")
_ENDINGS = ("device_lost", "stopping", "wrong_token")  # errors of a host that ends or is replaced


class HostLink:
    """Requests completions from the host, and reconnects when it comes back."""

    def __init__(
        self, workspace: Workspace, files: WorkspaceFiles, find: FindHost, watch: Watch
    ) -> None:
        self.last: tuple[str, Done] | None = None  # URI and result of the last completion
        self.quota = ""  # the host's last message about this user's quota
        self.failure = ""  # the host's message if the last completion failed
        self.client_id = uuid.uuid4().hex  # of this server
        self.known_as = self.client_id  # this server's name at the host
        self.search = HostSearch(find, watch, lambda: workspace.root)
        self._replica = ""  # the replica that holds the documents
        self._former: list[str] = []  # earlier names under which hosts may hold documents
        self._tasks: set[asyncio.Task[Any]] = set()  # asyncio holds only weak references
        self._in_step = asyncio.Lock()  # held until the host acknowledges the documents sent
        self._holder = 0, 0.0  # `search.process` of the host that holds the documents
        self._workspace = workspace
        self._files = files
        self._sync = HostSync(workspace)
        self._judged_at = time.monotonic()
        self._feedback: deque[Feedback] = deque(maxlen=MAX_FEEDBACK)  # for the next request

    async def reconnect(self) -> None:
        """Leave the host and search for another."""
        await self._close(CloseRequest(self.known_as))
        self._sync = HostSync(self._workspace)
        await self.search.restart()

    @property
    def reads_quickly(self) -> bool:
        """Whether the host reads a whole prompt in a moment, judging by the last completion."""
        if self.last is None:
            return False
        cost = self.last[1].cost
        num_read = max(cost.prompt_tokens - cost.reused_tokens, 1)
        return cost.prefill_ms / num_read * cost.prompt_tokens < _MOMENT_MS

    async def complete(
        self,
        anchor: Anchor,
        stop: StopRules = ANY_LENGTH,
        sampling: Sampling | None = None,
        *,
        is_prefetch: bool = False,
        edit: _Edit = lambda: None,
    ) -> AsyncGenerator[CompleteEvent]:
        """Bring the host up to date and complete. Raises HostGoneError and HostRefusedError.

        `edit` is called as the request goes out: documents may be closed or hidden meanwhile.
        """
        settings = self._workspace.settings
        build = partial(
            CompleteRequest,
            uri=anchor.document.uri,
            position=anchor.position,
            overlay=anchor.overlay,
            layout=settings.layout,
            lookahead=settings.lookahead,
            sampling=sampling or Sampling(settings.temperature),
            stop=stop,
            is_prefetch=is_prefetch,
        )
        event: CompleteEvent | None = None
        for attempt in range(_ATTEMPTS):
            client = await self._client()
            watch = self._begin(self._watch(client))
            try:
                shown = await self._shown(anchor)
                await self._in_step.acquire()
                built = partial(build, repository=shown)
                accepting = self._accepted(client, anchor, built, edit)
                async with aclosing(await self._uncut(self._begin(accepting))) as events:
                    async for event in events:
                        self._note(event, anchor if stop.max_tokens else None)
                        yield event
                if isinstance(event, Failed) and event.code in _ENDINGS:
                    await self._lost(client)
                return
            except HostAbsentError:  # it ended between requests, and another may replace it
                await self._lost(client)
            except HostGoneError:
                await self._lost(client)
                raise
            except HostQuotaError as error:
                await self._wait_as_told(error, is_last=attempt == _ATTEMPTS - 1)
            except HostRefusedError as error:
                if error.problem.code in _ENDINGS:
                    await self._lost(client)
                elif not error.problem.uris:  # otherwise the next attempt sends them whole
                    raise
            finally:
                watch.cancel()
        raise HostGoneError(f"the host rejected the document after {_ATTEMPTS} attempts")

    def _note(self, event: CompleteEvent, anchor: Anchor | None) -> None:
        self.failure = event.message if isinstance(event, Failed) else ""
        if isinstance(event, Done) and anchor is not None:
            self.last = anchor.document.uri, event

    async def _watch(self, client: HostClient) -> None:
        """Leave a host that hangs; one that is merely slow still answers status requests."""
        while True:
            await asyncio.sleep(_WATCH_S)
            if client is not self.search.client:
                return
            with suppress(HostRefusedError):
                try:
                    await client.status()
                except HostGoneError:
                    await self.search.lost(client)

    async def _wait_as_told(self, error: HostQuotaError, *, is_last: bool) -> None:
        """Wait if the pause is short. Raises `error` otherwise."""
        self.quota = error.problem.message
        if is_last or error.retry_after_s > _SHORT_WAIT_S:
            raise error
        await asyncio.sleep(error.retry_after_s)

    async def sync(self, snapshot: Snapshot) -> None:
        """Bring the host up to date between requests; if that fails, the next request does."""
        async with self._in_step:
            client, syncs = self.search.client, self._sync.syncs(snapshot)
            if client is None or not syncs.buffers or self._sync.is_past(snapshot):
                return
            try:
                await client.sync(SyncRequest(self.known_as, self._workspace.root, syncs.buffers))
                self._taken(client, syncs)
            except HostRefusedError as error:
                self._refused(client, error.problem)
                if not error.problem.uris:
                    _LOG.info("the host refused documents: %s", error.problem.message)
            except HostGoneError as error:
                _LOG.info("documents could not be sent ahead: %s", error)

    def tell(self, completion_id: str, kind: FeedbackKind, length: int | None = None) -> None:
        """Tell with the next request what became of a completion; `length` in code points."""
        self._feedback.append(Feedback(self.client_id, completion_id, kind, length))

    def knows(self, uri: str) -> bool:
        """Whether the host may hold a document."""
        return uri in self._sync

    async def retract(self) -> tuple[str, ...]:
        """Have the host close documents that are closed or hidden, and return their URIs."""
        unwanted: list[str] = []
        for _ in range(0, len(self._sync), _JUDGED_AT_ONCE):
            unwanted += await self._retract_some()
            await asyncio.sleep(0)  # let other pending work go first
        return tuple(unwanted)

    async def _retract_some(self) -> tuple[str, ...]:
        self._judged_at = time.monotonic()
        if unwanted := self._sync.unwanted(_JUDGED_AT_ONCE):
            self._sync.closed(unwanted)
            if not await self._close(CloseRequest(self.known_as, unwanted)):
                self._sync.forget(unwanted)  # it did not receive the request
        return unwanted

    async def leave(self) -> None:
        """Send the remaining feedback and have the host close all documents."""
        client = self.search.client
        with suppress(HostGoneError, TimeoutError):
            async with asyncio.timeout(_CLOSE_S):
                while client is not None and self._feedback:
                    with suppress(HostRefusedError):  # the host has forgotten that completion
                        await client.send(self._feedback.popleft())
        for name in (*self._former, self.known_as):
            await self._close(CloseRequest(name))
        await self.search.leave()

    async def _shown(self, anchor: Anchor) -> tuple[Snippet, ...]:
        """Return snippets of other files, after withdrawing documents that were hidden since."""
        while self._former:  # no completion runs under these names
            self._begin(self._close(CloseRequest(self._former.pop())))
        if time.monotonic() - self._judged_at > _JUDGE_S:
            await self._retract_some()
        return await self._files.shown(anchor, is_quick=self.reads_quickly)

    async def _uncut(
        self, opening: asyncio.Task[AsyncGenerator[CompleteEvent]]
    ) -> AsyncGenerator[CompleteEvent]:
        """Return a request's events; one cancelled still goes out, to settle what the host has."""
        try:
            return await asyncio.shield(opening)
        except asyncio.CancelledError:
            opening.add_done_callback(self._unwanted)
            asyncio.get_running_loop().call_later(_ACCEPT_S, opening.cancel)
            raise

    async def _accepted(
        self, client: HostClient, anchor: Anchor, build: _Build, edit: _Edit
    ) -> AsyncGenerator[CompleteEvent]:
        """Send a request and return its events, once the host has accepted it and its documents."""
        document, cells = anchor.document, anchor.cells
        try:
            if client is not self.search.client:
                raise HostAbsentError("the host has just gone")
            if not self._workspace.permissions.may_send(document):
                raise HostRefusedError(_HIDDEN)
            if self._sync.is_past(document):
                raise HostRefusedError(_PAST)
            syncs = self._sync.syncs(document)
            request = build(
                client=self.known_as,
                workspace=self._workspace.root,
                version=host_version(document),
                sync=syncs.buffers,
                feedback=tuple(self._feedback),
                edit=edit(),
                # Cells that are not sent, being secret or too large, are in no prompt.
                above=tuple(cell for cell in cells.above if self._sync.brings(syncs, cell.uri)),
                below=tuple(cell for cell in cells.below if self._sync.brings(syncs, cell.uri)),
            )
            self._feedback.clear()
            events = client.complete(request)
            await anext(events)
            self._taken(client, syncs)
        except HostRefusedError as error:
            self._refused(client, error.problem)
            raise
        finally:
            self._in_step.release()
        return events

    def _unwanted(self, opening: asyncio.Task[AsyncGenerator[CompleteEvent]]) -> None:
        if not opening.cancelled() and opening.exception() is None:
            self._begin(opening.result().aclose())

    def _taken(self, client: HostClient, syncs: Syncs) -> None:
        """Note that the host has accepted documents; a different replica has only these."""
        if self._replica not in ("", client.replica):
            self._begin_anew()
        else:
            self._sync.taken(syncs)
        self._replica = client.replica

    def _refused(self, client: HostClient, problem: Problem) -> None:
        """Note whether the host lacks the documents that it names, or all of them."""
        if not problem.uris:
            return
        if problem.code == UNKNOWN_CLIENT or client.replica != self._replica:
            self._begin_anew()
            self._replica = client.replica
        else:
            self._sync.forget(problem.uris)

    def _begin_anew(self) -> None:
        """Send all anew under a new name, as a replica may hold outdated text under the former."""
        self._sync.forget()
        self._former.append(self.known_as)
        self.known_as = uuid.uuid4().hex

    def _begin(self, work: Coroutine[None, None, _Outcome]) -> asyncio.Task[_Outcome]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _client(self) -> HostClient:
        if self.search.client is None:
            await self.search.ready()
        if self.search.client is None:
            raise HostGoneError("the host is not there")
        if self._holder != self.search.process:
            self._holder, self._sync = self.search.process, HostSync(self._workspace)
        return self.search.client

    async def _lost(self, client: HostClient) -> None:
        if self._replica:  # another replica may hold outdated documents under this name
            self._begin_anew()
            self._replica = ""
        await self.search.lost(client)

    async def _close(self, request: CloseRequest) -> bool:
        if self.search.client is not None:
            with suppress(HostGoneError, HostRefusedError, TimeoutError):
                await asyncio.wait_for(self.search.client.close_buffers(request), _CLOSE_S)
                return True
        return False
