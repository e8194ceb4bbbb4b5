"""One editor's session: its settings, its documents, its link to the host. No LSP wiring."""

import asyncio
import re
import time
from collections import deque
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import partial
from pathlib import Path

from lsprotocol import types

from engine.host.protocol import Done, Feedback, FeedbackKind, Position
from lsp_server.completion.inline_completer import Answer, InlineCompleter
from lsp_server.documents.document import Snapshot
from lsp_server.documents.documents import Documents
from lsp_server.documents.file_path import file_path
from lsp_server.host.daemon import ensure_host
from lsp_server.host.failures import boot_s
from lsp_server.host.link import HostLink
from lsp_server.host.retry import Retry
from lsp_server.host.search import LinkReport, Watch
from lsp_server.privacy.hidden_files import IGNORE_FILES
from lsp_server.privacy.permissions import Permissions
from lsp_server.reasons import HIDING, EmptyAnswer, Reason, shown_name
from lsp_server.repository.cursor_view import OnProgress
from lsp_server.setting_layers import Layer, SettingsProblem
from lsp_server.settings import Settings, load_settings
from lsp_server.why import write_last_prompt, write_reasons
from lsp_server.workspace_files import WorkspaceFiles

INITIAL = "initializationOptions"
OWN_OVER_TCP = "foregram.toml and the environment"
OWN_IN_EDITORS = f"{OWN_OVER_TCP}, and from {INITIAL} when an editor starts foregram"
_NOTE_S = 1.0
_MOST_REASONS = 100
_PAUSE_S = 0.3  # without a key: time for what was put off
_LF_CLIENTS = ("neovim", "nvim")  # they write the document's line ends themselves


class Session:
    """All that belongs to one client, created before it initializes.

    `watch` is called at each change of the host's state; `retry` has the editor repeat a request
    that found no host.
    """

    def __init__(
        self,
        documents: Documents,
        command_line: Layer,
        watch: Watch,
        retry: Callable[[], None],
        on_index: OnProgress = lambda _read, _total, _note: None,
    ) -> None:
        self.documents = documents
        self.reasons: deque[EmptyAnswer] = deque(maxlen=_MOST_REASONS)  # the oldest first
        self._show = watch
        self._retry = Retry(retry)
        self.client_name = ""
        self.is_public = False  # others than its user can reach it
        self._host: tuple[object, ...] | None = None  # None until it is searched for
        self._options: dict[str, Layer] = {}  # by source
        self._wanted_at = boot_s()  # when a person last wanted a host, by a start or a setting
        self._shown = ""  # the id of the completion on the screen, as far as the client reports it
        self._command_line = command_line
        self._pauses: dict[str, asyncio.TimerHandle] = {}  # by document
        self._edited: set[str] = set()  # open documents, by their URIs
        self._tasks: set[asyncio.Future[None]] = set()  # asyncio itself holds them weakly
        self._noting: asyncio.TimerHandle | None = None
        self._noted: tuple[str, Done] | None = None  # the last prompt that was kept
        self._roots: list[Path] = []
        self._root_uris: list[str] = []
        loaded = load_settings(command_line)
        self.settings: Settings = loaded.settings
        self.problems: tuple[SettingsProblem, ...] = loaded.problems
        self._permissions = Permissions([], self.settings)
        self.files = WorkspaceFiles(documents, on_index)
        self.link = HostLink(
            documents,
            lambda: ensure_host(self.settings, wanted_at=self._wanted_at),
            may_send=self._may_send,
            path_of=self._path_of,
            watch=self._watch,
        )
        self.completer = InlineCompleter(
            documents,
            self.link,
            lambda: self._permissions,
            lambda: self.settings,
            self._line_end,
            lambda anchor: self.files.shown(anchor, is_quick=self.completer.host.reads_quickly),
        )

    def configure(self, options: Mapping[str, object], source: str) -> None:
        """Take over options; they replace those of the same source, and no others.

        What an editor sends later may be what a workspace says: of the user's own settings it
        changes none. Those that it repeats are no news.
        """
        elsewhere = OWN_OVER_TCP if self.is_public else ""
        if source != INITIAL:
            elsewhere = elsewhere or OWN_IN_EDITORS
            initial = self._options[INITIAL].values if INITIAL in self._options else {}
            news = ((key, one) for key, one in options.items() if initial.get(key) != one)
            options = dict(news)
        self._options[source] = Layer(source, options, own_elsewhere=elsewhere)
        loaded = load_settings(self._command_line, *self._options.values())
        if loaded.settings != self.settings:
            self._wanted_at = boot_s()
            self.completer.configured()
        self.settings, self.problems = loaded.settings, loaded.problems
        self._judge_anew()

    async def connect(self) -> None:
        """Go to the host that the settings name, unless it is that one already."""
        if not self.settings.enable:
            return  # nobody pays for a model that is switched off
        wanted = self.settings  # what decides which host is used:
        remote = wanted.host_url, wanted.token, wanted.token_file, wanted.ca_file
        former, self._host = self._host, (*remote, wanted.insecure_http, wanted.runtime_folder)
        if former is None:
            self.link.connect()
        elif former != self._host or self.link.state == "failed":
            await self.link.reconnect()
        elif self.link.state != "ready":
            self.link.connect()  # what was wrong may be right by now

    def enter(self, roots: list[str]) -> None:
        """The workspace folders, by their URIs."""
        self._root_uris = list(roots)
        self._roots = [path for root in roots if (path := file_path(root))]
        self.link.workspace = roots[0] if roots else ""
        self._judge_anew()

    def _judge_anew(self) -> None:
        """The folders or the settings changed: other documents may be sent, and files indexed."""
        self._permissions = Permissions(self._roots, self.settings, self._permissions)
        # Over TCP the folders are the client's word: it could name what only our user may read.
        if not self.is_public:
            self.files.enter(self._roots, self.settings)
        self._begin(self._retract())

    def move(self, *, added: list[str], removed: list[str]) -> None:
        """Workspace folders came and went."""
        self.enter([root for root in self._root_uris if root not in removed] + added)

    async def complete(self, params: types.InlineCompletionParams) -> Answer:
        """Answer a request, and note the reason if the answer is empty."""
        uri = params.text_document.uri
        waited, reason = self.link.state != "ready", None
        self._retry.began()
        try:
            answer = await self.completer.answer(params)
            reason = answer.reason
        except asyncio.CancelledError:
            reason = Reason.CANCELLED
            raise
        finally:
            self._note_later()
            self._retry.ended(reason, waited=waited, is_ready=self.link.state == "ready")
            if reason is not None:
                self.reasons.append(self.explained(uri, reason, params.position.line + 1))
            if reason in HIDING and self.link.knows(uri):
                self._begin(self._retract())
        return answer

    def changed(self, uri: str, changes: Sequence[types.TextDocumentContentChangeEvent]) -> None:
        """A document was edited. A new line may move the prompt, so that is prefilled already."""
        self._retry.typed()
        self._edited.add(uri)
        self.files.edited(uri, changes)
        loop = asyncio.get_running_loop()
        if (pause := self._pauses.pop(uri, None)) is not None:
            pause.cancel()
        self._pauses[uri] = loop.call_later(_PAUSE_S, self._paused, uri)
        last = changes[-1] if changes else None
        if not isinstance(last, types.TextDocumentContentChangePartial) or not self._prefetches:
            return
        *above, line = re.split("\r\n|\r|\n", last.text)
        if above:
            row = last.range.start.line + len(above)
            prefill = partial(self.completer.prefill, uri, Position(row, len(line)))
            self.when_judged(prefill)

    def _paused(self, uri: str) -> None:
        """Nobody has typed for a moment."""
        self._pauses.pop(uri, None)
        if self.completer.host.catch_up(uri):  # the next stretch behind what others wait for
            self._pauses[uri] = asyncio.get_running_loop().call_later(0, self._paused, uri)
            return
        self._begin(self._send_ahead(uri))
        self._begin(self._retract())

    def when_judged(self, then: Callable[[], None]) -> None:
        """Go on once the open documents are judged: at once where they are."""

        async def judge() -> None:
            await self.look()
            then()

        if self._permissions.knows(self.documents.snapshots()):
            then()
        else:
            self._begin(judge())

    async def look(self) -> None:
        """Judge the open documents beside the event loop, where that may take long."""
        await self._permissions.look(self.documents.snapshots())

    def files_changed(self, uris: Sequence[str]) -> None:
        """Files changed, came or went."""
        self.files.changed(uris)
        if any(uri.endswith((*IGNORE_FILES, "/info/exclude")) for uri in uris):
            self._permissions.outdate()

    async def _retract(self) -> None:
        """Have the host close documents that it may not hold any more."""
        await self.look()
        for uri in await self.link.retract():
            self.completer.forget(uri)

    def _begin(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    @property
    def _prefetches(self) -> bool:
        return self.settings.speculate and self.link.state == "ready"

    async def closed(self, *uris: str) -> None:
        """Documents were closed."""
        for uri in uris:
            self._edited.discard(uri)
            self.completer.forget(uri)
            self._permissions.forget(uri)
        await self.link.close_documents(uris)

    def shown(self, completion_id: str) -> None:
        """A completion is on the screen; the one that it replaces was rejected."""
        former, self._shown = self._shown, completion_id
        if former not in ("", completion_id):
            self._tell(former, "rejected")
        if former != completion_id:
            self._tell(completion_id, "shown")

    def accepted(self, completion_id: str, length: int | None = None) -> None:
        """A completion was accepted: its first `length` code points, or all of it."""
        self._shown = ""
        kind: FeedbackKind = "accepted" if length is None else "partly_accepted"
        self._tell(completion_id, kind, length)

    async def focused(self, uri: str) -> None:
        """The user looks at a document, and may continue where it was completed last."""
        self.files.look()
        await self._send_ahead(uri)
        if self._prefetches:
            self.completer.prefill_again(uri)

    def rested(self, uri: str, position: types.Position) -> None:
        """The cursor rests in a document. Who edits it may go on there; who only reads does not."""
        if self._prefetches and uri in self._edited:
            self.completer.prefill_there(uri, position)

    async def _send_ahead(self, uri: str) -> None:
        """The host should hold a document before a request comes."""
        await self.look()
        snapshot = self.documents.snapshot(uri)
        if isinstance(snapshot, Snapshot) and self.completer.left_alone(uri) is None:
            await self.link.sync(snapshot)

    def _tell(self, completion_id: str, kind: FeedbackKind, length: int | None = None) -> None:
        self.link.tell(Feedback(self.link.client_id, completion_id, kind, length))

    async def leave(self) -> None:
        """The client goes."""
        if self._noting is not None:
            self._noting.cancel()
            self._write_notes()
        self.files.close()
        self.completer.host.stop_all()
        await self.link.leave()

    def _watch(self, report: LinkReport) -> None:
        self._show(report)
        if report.state == "ready":
            self._retry.host_is_ready()

    def _may_send(self, snapshot: Snapshot) -> bool:
        return self._permissions.may_send(snapshot)

    def _path_of(self, uri: str) -> str:
        return self._permissions.path_of(uri)

    def _line_end(self, snapshot: Snapshot) -> str:
        wanted = self.settings.line_ends
        if wanted == "auto":
            is_lf = any(name in self.client_name.lower() for name in _LF_CLIENTS)
            wanted = "lf" if is_lf else "document"
        return "\n" if wanted == "lf" else snapshot.line_end

    def explained(self, uri: str, reason: Reason, line: int | None) -> EmptyAnswer:
        """An empty answer of now, with what else a person needs: where the secret is, what failed."""
        snapshot, secret = self.documents.snapshot(uri), None
        if reason is Reason.SECRET_FILE and isinstance(snapshot, Snapshot):
            secret = self._permissions.secret(snapshot)
        said = {Reason.QUOTA: self.link.quota, Reason.HOST_FAILED: self.link.failure}
        detail = said.get(reason, "")
        detail = detail if secret is None else secret.sentence
        # A client may send half a surrogate pair, which no file can hold.
        known = uri.encode("utf-8", "replace").decode()
        return EmptyAnswer(time.time(), shown_name(uri), reason, known, line, detail)

    def _note_later(self) -> None:
        """Write reasons and the last prompt soon: not at every key, which may change both."""
        if self._noting is None:
            loop = asyncio.get_running_loop()
            self._noting = loop.call_later(_NOTE_S, self._write_notes)

    def _write_notes(self) -> None:
        self._noting = None
        notes = self.settings.runtime_folder, self.link.client_id
        if self.reasons:
            write_reasons(*notes, self.reasons)
        last = self.completer.host.last
        if last is not None and last is not self._noted:  # else it would look new
            self._noted = last
            write_last_prompt(*notes, *last, self.files.trouble)
