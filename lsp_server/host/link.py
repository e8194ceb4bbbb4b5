"""One language server's link to its host: completions and feedback."""

import asyncio
import uuid
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import aclosing, suppress
from functools import partial
from typing import Any, TypeVar

from engine.config import Sampling, StopRules
from engine.host.protocol import (
    MAX_FEEDBACK,
    CompleteEvent,
    CompleteRequest,
    Failed,
    Feedback,
    FeedbackKind,
    Problem,
)
from engine.request import Done, EditTask, Snippet
from lsp_server.documents.anchor import Anchor
from lsp_server.host.client import (
    HostAbsentError,
    HostClient,
    HostGoneError,
    HostQuotaError,
    HostRefusedError,
)
from lsp_server.host.held_documents import HeldDocuments
from lsp_server.host.search import FindHost, HostSearch, Watch
from lsp_server.host.sync import host_version
from lsp_server.workspace import Workspace
from lsp_server.workspace_files import WorkspaceFiles

_Outcome = TypeVar("_Outcome")
_Build = Callable[..., CompleteRequest]  # takes arguments known only when the request goes out
_Edit = Callable[[], EditTask | None]
_ATTEMPTS = 3  # a host may have forgotten the documents, or been replaced
_REPORT_S = 1.0  # seconds to send the feedback that is left
_WATCH_S = 3.0  # seconds between status checks while a request has no answer
_ACCEPT_S = 1.0  # seconds that a cancelled request may take to be accepted
_MOMENT_MS = 300.0  # milliseconds in which a quick host reads a whole prompt
_TELLING_PART = 0.1  # of a prompt: a GPU reads three tokens in the time of a hundred
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
        self.reads_quickly = False  # the host reads a whole prompt in a moment, as far as is known
        self.quota = ""  # the host's last message about this user's quota
        self.failure = ""  # the host's message if the last completion failed
        self.client_id = uuid.uuid4().hex  # of this server
        self.search = HostSearch(find, watch, lambda: workspace.root)
        self.documents = HeldDocuments(workspace, self.search, self.client_id)
        self._tasks: set[asyncio.Task[Any]] = set()  # asyncio holds only weak references
        self._workspace = workspace
        self._files = files
        self._feedback: deque[Feedback] = deque(maxlen=MAX_FEEDBACK)  # for the next request

    async def reconnect(self) -> None:
        """Leave the host and search for another."""
        await self.documents.leave()
        await self.search.restart()

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
                await self.documents.in_step.acquire()
                built = partial(build, repository=shown)
                accepting = self._accepted(client, anchor, built, edit)
                async with aclosing(await self._uncut(self._begin(accepting))) as events:
                    async for event in events:
                        self._note(event, anchor if stop.max_tokens else None)
                        yield event
                if isinstance(event, Failed) and event.code in _ENDINGS:
                    await self.documents.lost(client)
                return
            except HostAbsentError:  # it ended between requests, and another may replace it
                await self.documents.lost(client)
            except HostGoneError:
                await self.documents.lost(client)
                raise
            except HostQuotaError as error:
                await self._wait_as_told(error, is_last=attempt == _ATTEMPTS - 1)
            except HostRefusedError as error:
                if error.problem.code in _ENDINGS:
                    await self.documents.lost(client)
                elif not error.problem.uris:  # otherwise the next attempt sends them whole
                    raise
            finally:
                watch.cancel()
        raise HostGoneError(f"the host rejected the document after {_ATTEMPTS} attempts")

    def _note(self, event: CompleteEvent, anchor: Anchor | None) -> None:
        self.failure = event.message if isinstance(event, Failed) else ""
        if not isinstance(event, Done):
            return
        if anchor is not None:
            self.last = anchor.document.uri, event
        cost = event.cost
        num_read = cost.prompt_tokens - cost.reused_tokens
        if num_read >= max(_TELLING_PART * cost.prompt_tokens, 1):
            whole_ms = cost.prefill_ms * cost.prompt_tokens / num_read
            self.reads_quickly = whole_ms < _MOMENT_MS

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

    def tell(self, completion_id: str, kind: FeedbackKind, length: int | None = None) -> None:
        """Note what became of a completion, for the next request; `length` in code points."""
        self._feedback.append(Feedback(self.client_id, completion_id, kind, length))

    async def report(self) -> None:
        """Send the feedback that no request has taken yet."""
        client = self.search.client
        with suppress(HostGoneError, TimeoutError):
            async with asyncio.timeout(_REPORT_S):
                while client is not None and self._feedback:
                    with suppress(HostRefusedError):  # the host has forgotten that completion
                        await client.send(self._feedback.popleft())

    async def leave(self) -> None:
        """Send the remaining feedback and have the host close all documents."""
        await self.report()
        await self.documents.leave()
        await self.search.leave()

    async def _shown(self, anchor: Anchor) -> tuple[Snippet, ...]:
        """Return snippets of other files, after withdrawing documents that were hidden since."""
        for closing in self.documents.closing():
            self._begin(closing)
        await self.documents.retract_soon()
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
        documents, sync = self.documents, self.documents.sync
        try:
            if client is not self.search.client:
                raise HostAbsentError("the host has just gone")
            if not self._workspace.permissions.may_send(document):
                raise HostRefusedError(_HIDDEN)
            if sync.is_past(document):
                raise HostRefusedError(_PAST)
            syncs = sync.syncs(document)
            request = build(
                client=documents.known_as,
                workspace=self._workspace.root,
                version=host_version(document),
                sync=syncs.buffers,
                feedback=tuple(self._feedback),
                edit=edit(),
                # Cells that are not sent, being secret or too large, are in no prompt.
                above=tuple(cell for cell in cells.above if sync.brings(syncs, cell.uri)),
                below=tuple(cell for cell in cells.below if sync.brings(syncs, cell.uri)),
            )
            self._feedback.clear()
            events = client.complete(request)
            await anext(events)
            documents.taken(client, syncs)
        except HostRefusedError as error:
            documents.refused(client, error.problem)
            raise
        finally:
            documents.in_step.release()
        return events

    def _unwanted(self, opening: asyncio.Task[AsyncGenerator[CompleteEvent]]) -> None:
        if not opening.cancelled() and opening.exception() is None:
            self._begin(opening.result().aclose())

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
        self.documents.follow()
        return self.search.client
