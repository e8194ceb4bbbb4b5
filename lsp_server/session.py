"""One editor's session: settings, documents and the link to the host, without LSP wiring."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from lsprotocol import types

from engine.host.protocol import FeedbackKind
from lsp_server.completion.completer import InlineCompleter
from lsp_server.documents.document import Snapshot
from lsp_server.documents.documents import Documents
from lsp_server.documents.file_path import file_path
from lsp_server.edits.asked_edits import AskedEdits
from lsp_server.edits.host_edits import HostEdits
from lsp_server.edits.next_edits import NextEdits
from lsp_server.edits.proposals import Proposals
from lsp_server.edits.refusals import DOCUMENT_CHANGED
from lsp_server.host.address import HostAddress
from lsp_server.host.daemon import ensure_host
from lsp_server.host.failures import boot_s
from lsp_server.host.link import HostLink
from lsp_server.host.search import LinkReport, Retry
from lsp_server.privacy.permissions import Permissions
from lsp_server.privacy.work_trees import IGNORE_FILES
from lsp_server.reasons import HIDING, HOST_TROUBLES, Reason, host_reason
from lsp_server.saved import Savings
from lsp_server.setting_layers import Layer, SettingsProblem
from lsp_server.settings import Settings, load_settings
from lsp_server.status import StatusLine
from lsp_server.why import AnswerLog, notable
from lsp_server.workspace import Workspace
from lsp_server.workspace_files import WorkspaceFiles

INITIAL = "initializationOptions"
_OWN = f"foregram.toml and the environment, and from {INITIAL} when an editor starts foregram"
_LONGEST = 2**31 - 1  # code points of a completion that a client may name
_PAUSE_S = 0.3  # seconds without a key before deferred work starts
_INVOKED = types.InlineCompletionTriggerKind.Invoked


class Session:
    """Everything that belongs to one client; created before the client initializes."""

    def __init__(self, documents: Documents, command_line: Layer, status: StatusLine) -> None:
        loaded = load_settings(command_line)
        self.problems: tuple[SettingsProblem, ...] = loaded.problems
        permissions = Permissions([], loaded.settings)
        self.workspace = Workspace(documents, loaded.settings, permissions)
        self.files = WorkspaceFiles(self.workspace, self._indexed)
        self.link = HostLink(self.workspace, self.files, self._find, self._watch)
        self.completer = InlineCompleter(self.workspace, self.link, status.has_more)
        self.answers = AnswerLog(self.workspace, self.link, self.files)
        host, proposals = HostEdits(self.workspace, self.link), Proposals(self.link)
        self.asked_edits = AskedEdits(self.workspace, host)
        self.next_edits = NextEdits(self.workspace, host, self.answers, proposals)
        self.savings = Savings(lambda: self.settings.cache_folder)
        self._status = status
        self._retry = Retry(status.ask_again)
        self._command_line = command_line
        self._options: dict[str, Layer] = {}  # by source
        self._root_uris: list[str] = []
        self._host: tuple[object, ...] | None = None  # None until it is searched for
        self._wanted_at = boot_s()  # when the user last started the editor or changed a setting
        self._focused = ""  # URI of the document that the user works in, if known
        self._shown = ""  # id of the completion on the screen, if the client reports it
        self._pauses: dict[str, asyncio.TimerHandle] = {}  # by document
        self._edited: set[str] = set()  # open documents, by their URIs
        self._tasks: set[asyncio.Future[object]] = set()  # asyncio holds only weak references

    @property
    def settings(self) -> Settings:
        """The current settings."""
        return self.workspace.settings

    def configure(self, options: Mapping[str, object], source: str) -> None:
        """Apply options in place of earlier ones from the same source."""
        layer = Layer(source, options)
        if source != INITIAL:
            initial = self._options[INITIAL].values if INITIAL in self._options else {}
            news = {key: one for key, one in options.items() if initial.get(key) != one}
            # These may come from the workspace, which cannot change the user's own settings.
            layer = Layer(source, news, own_elsewhere=_OWN)
        self._options[source] = layer
        loaded = load_settings(self._command_line, *self._options.values())
        if loaded.settings != self.settings:
            self._wanted_at = boot_s()
            self.completer.stop_all()
        self.workspace.settings, self.problems = loaded.settings, loaded.problems
        self._judge_anew()

    async def connect(self) -> None:
        """Connect to the host that the settings name, unless already connected to it."""
        if not self.settings.enable:
            return  # a disabled model must cost nothing
        wanted = self.settings  # the following fields decide which host is used
        remote = wanted.host_url, wanted.token, wanted.token_file, wanted.ca_file
        former, self._host = self._host, (*remote, wanted.insecure_http, wanted.runtime_folder)
        if former is not None and (former != self._host or self.link.search.state == "failed"):
            await self.link.reconnect()
        elif self.link.search.state != "ready":
            self.link.search.begin()  # the earlier trouble may be over

    def enter(self, roots: Sequence[str]) -> None:
        """Set the workspace folders, given as URIs."""
        self._root_uris = list(roots)
        self.workspace.root = roots[0] if roots else ""
        self._judge_anew()

    def move(self, *, added: list[str], removed: list[str]) -> None:
        """Add and remove workspace folders."""
        self.enter([root for root in self._root_uris if root not in removed] + added)

    def _judge_anew(self) -> None:
        folders = [path for root in self._root_uris if (path := file_path(root))]
        former = self.workspace.permissions
        self.workspace.permissions = Permissions(folders, self.settings, former)
        self.files.enter(folders)
        self._begin(self._retract())

    async def complete(self, params: types.InlineCompletionParams) -> types.InlineCompletionList:
        """Return ghost text at a position, or note why there is none."""
        uri = params.text_document.uri
        if uri != self._focused:
            self.focus(uri)
        waited, reason = self.link.search.state != "ready", None
        self._retry.began()
        try:
            with self._status.working():
                answer = await self.completer.answer(params)
            reason = answer if isinstance(answer, Reason) else None
        except asyncio.CancelledError:
            reason = Reason.CANCELLED
            raise
        finally:
            self._retry.ended(reason, waited=waited, is_ready=self.link.search.state == "ready")
            self.answers.note(uri, reason, params.position.line + 1)
            if reason in HIDING and uri in self.link.documents.sync:
                self._begin(self._retract())
        is_about_document = reason is not None or params.context.trigger_kind is not _INVOKED
        if is_about_document and uri == self._focused:
            self._status.looks_at(reason)
        items = [] if isinstance(answer, Reason) else answer
        if items and items[0].command and (arguments := items[0].command.arguments):
            self.savings.offered(str(arguments[0]))
        return types.InlineCompletionList(items)

    def why_here(self, uri: str, line: int | None) -> dict[str, Any]:
        """Return a document's empty answers, newest first, and why it would get none now."""
        answers = notable([one for one in self.answers.kept if one.uri == uri])
        reason = self.workspace.left_alone(uri)
        if reason is None and self.link.search.state != "ready":
            reason = host_reason(self.link.search.state)
        now = None if reason is None else self.answers.explained(uri, reason, line).shown()
        if now is not None and reason in HOST_TROUBLES:
            now |= self._status.of_host
        shown = [answer.shown() for answer in reversed(answers)]
        return {"now": now, "answers": shown, "prompt": self.answers.prompt_of(uri)}

    def focus(self, uri: str) -> None:
        """Note the document that the user works in; "" if unknown."""
        is_another, self._focused = uri != self._focused, uri
        self._when_judged(partial(self._look_at, uri, is_another=is_another))

    def _look_at(self, uri: str, *, is_another: bool) -> None:
        if uri == self._focused:
            reason = self.workspace.left_alone(uri) if uri else None
            self._status.looks_at(reason, is_another=is_another)

    def refresh(self, uris: Iterable[str] | None = None) -> None:
        """Update the status after these documents, or all, were opened, closed or judged anew."""
        if uris is None or self._focused in uris:
            self.focus(self._focused)

    def opened(self, uris: Iterable[str]) -> None:
        """Note opened documents."""
        for uri in uris:
            self.refresh([uri])
            self._begin(self.next_edits.follow(uri))

    def changed(self, uri: str, changes: Sequence[types.TextDocumentContentChangeEvent]) -> None:
        """Note an edit."""
        self._retry.typed()
        self._edited.add(uri)
        self.completer.changed(uri)
        self.asked_edits.stop(uri, DOCUMENT_CHANGED)
        self.files.edited(uri, changes)
        self.next_edits.changed(uri, changes)
        if (pause := self._pauses.pop(uri, None)) is not None:
            pause.cancel()
        self._pause(uri, _PAUSE_S)

    def _pause(self, uri: str, delay_s: float) -> None:
        loop = asyncio.get_running_loop()
        self._pauses[uri] = loop.call_later(delay_s, self._paused, uri)

    def _paused(self, uri: str) -> None:
        self._pauses.pop(uri, None)
        if self.completer.places.catch_up(uri):  # parse the rest after other pending work
            self._pause(uri, 0)
            return
        self._begin(self._send_ahead(uri))
        self._begin(self.next_edits.follow(uri))
        self._begin(self._retract())
        self._begin(self.link.report())
        if self._prefetches:
            self.completer.ahead.paused(uri)

    def _when_judged(self, then: Callable[[], None]) -> None:
        async def judge() -> None:
            await self.workspace.look()
            then()

        if self.workspace.permissions.knows(self.workspace.documents.snapshots()):
            then()
        else:
            self._begin(judge())

    def files_changed(self, uris: Sequence[str]) -> None:
        """Note that files changed, appeared or disappeared."""
        self.files.changed(uris)
        if any(uri.endswith((*IGNORE_FILES, "/info/exclude")) for uri in uris):
            self.workspace.permissions.outdate()

    def closed(self, *uris: str) -> None:
        """Forget closed documents and have the host close them."""
        self.refresh(uris)
        for uri in uris:
            self._edited.discard(uri)
            self.completer.forget(uri)
            self.asked_edits.stop(uri, DOCUMENT_CHANGED)
            self.workspace.permissions.forget(uri)
        self.next_edits.closed(*uris)
        self._begin(self.link.documents.retract())

    def shown(self, completion_id: str) -> None:
        """Report a completion as shown and the one that it replaces as rejected."""
        former, self._shown = self._shown, completion_id
        if former not in ("", completion_id):
            self.link.tell(former, "rejected")
        if former != completion_id:
            self.link.tell(completion_id, "shown")

    def accepted(
        self,
        completion_id: str,
        length: int | None,
        kind: FeedbackKind = "accepted",
        *,
        begun: int = 0,
    ) -> None:
        """Report a completion as accepted: its first `length` code points, or all of it.

        The user had typed the first `begun` of them.
        """
        self._shown = ""
        self.next_edits.history.accepted()
        end = length and min(max(length, 0), _LONGEST)
        self.link.tell(completion_id, kind, end)
        text = self.completer.cache.text_of(completion_id)
        self.savings.accepted(completion_id, text[:end], begun)

    async def looked_at(self, uri: str) -> None:
        """Prepare the host for a document that the user turns to."""
        self.focus(uri)
        self.files.look()
        await self._send_ahead(uri)
        if self._prefetches:
            self.completer.ahead.prefill(uri)

    def rested(self, uri: str, position: types.Position) -> None:
        """Complete ahead where the cursor rests; in a document not edited yet, prefill alone."""
        if self._prefetches:
            self.completer.ahead.rested(uri, position, is_written=uri in self._edited)

    async def leave(self) -> None:
        """End the session and release everything."""
        for pause in self._pauses.values():
            pause.cancel()
        self.answers.close()
        self.files.close()
        self.completer.stop_all()
        self.asked_edits.stop_all()
        self.next_edits.stop()
        self.next_edits.stop_ahead()
        await self.link.leave()
        await self.savings.close()

    @property
    def _prefetches(self) -> bool:
        return self.settings.speculate and self.link.search.state == "ready"

    async def _send_ahead(self, uri: str) -> None:
        await self.workspace.look()
        snapshot = self.workspace.documents.snapshot(uri)
        if isinstance(snapshot, Snapshot) and self.workspace.left_alone(uri) is None:
            await self.link.documents.bring(snapshot)

    async def _retract(self) -> None:
        await self.workspace.look()
        for uri in await self.link.documents.retract():
            self.completer.forget(uri)
            self.next_edits.proposals.forget(uri)

    def _begin(self, work: Coroutine[None, None, object]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _find(self) -> HostAddress:
        return await ensure_host(self.settings, wanted_at=self._wanted_at)

    def _watch(self, report: LinkReport) -> None:
        self._status.watch(report)
        if report.state == "ready":
            self._retry.host_is_ready()

    def _indexed(self, num_read: int, num_files: int, note: str) -> None:
        self._status.indexed(num_read, num_files, note, self.files.problem)
