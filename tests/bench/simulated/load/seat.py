"""One person at a host: the requests of each key, and the text shown.

The rules are the language server's. Three things are simpler, to save this process's time with many
people. Places and broken code are judged by the text, not by a syntax tree. No index is asked, and
no file is hidden.
"""

import asyncio
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field

from lsprotocol import types

from engine.host.protocol import Position
from lsp_server.completion.completer import InlineCompleter
from lsp_server.documents.document import Snapshot
from lsp_server.documents.documents import Documents
from lsp_server.host.address import HostAddress
from lsp_server.host.search import LinkReport
from lsp_server.prompt.place import Place, place_by_text
from lsp_server.prompt.syntax import DocumentSyntax, Places
from lsp_server.settings import Settings
from lsp_server.workspace_files import WorkspaceFiles
from tests.bench.simulated.load.host_requests import CountingLink, HostRequest
from tests.bench.simulated.person import Action
from tests.bench.simulated.screen import Screen
from tests.bench.simulated.traces import Trace
from tests.support.editor import behind
from tests.support.polling import ServerError
from tests.support.workspaces import HeldPermissions, nothing, workspace_of

_READY_S = 180.0


class _SyntaxByText(DocumentSyntax):
    def place(self, lines: Sequence[str], position: Position) -> Place:
        return place_by_text(lines, position, self._language_id)

    def parsed_line(self, lines: Sequence[str], row: int) -> None:
        return None


class _PlacesByText(Places):
    def syntax(self, snapshot: Snapshot) -> DocumentSyntax:
        return _SyntaxByText(snapshot.language_id)


class _AllPermitted(HeldPermissions):
    async def look(self, snapshots: Sequence[Snapshot]) -> None:
        pass

    def refusal(self, snapshot: Snapshot) -> None:
        return None


@dataclass(slots=True)
class OpenFiles:
    """The documents that a person has open below the URI `root`, and the cursor in one of them."""

    root: str
    documents: Documents = field(default_factory=Documents)
    _uri: str = ""
    _before: str = ""  # the text up to the cursor
    _version: int = 1

    def turn_to(self, trace: Trace) -> list[str]:
        """Open a trace's files, the cursor before its approach; return the URIs closed for it."""
        self._uri = self.root + trace.path
        texts = {self.root + one.path: one.text for one in reversed(trace.open_buffers)}
        texts.pop(self._uri, None)
        held = {one.uri for one in self.documents.snapshots()}
        closed = [uri for uri in held if uri not in texts]
        for uri in closed:
            self.documents.close(uri)
        texts = {uri: text for uri, text in texts.items() if uri not in held}
        for uri, text in {**texts, self._uri: trace.before + trace.suffix}.items():
            self.documents.open(types.TextDocumentItem(uri, "python", 1, text))
        self._before, self._version = trace.before, 1
        return closed

    def type(self, text: str) -> None:
        self._version += 1
        cursor = behind(self._before)
        change = types.TextDocumentContentChangePartial(types.Range(cursor, cursor), text)
        self.documents.change(self._uri, self._version, [change])
        self._before += text

    @property
    def question(self) -> types.InlineCompletionParams:
        document = types.TextDocumentIdentifier(self._uri)
        context = types.InlineCompletionContext(types.InlineCompletionTriggerKind.Automatic)
        return types.InlineCompletionParams(context, document, behind(self._before))


@dataclass(slots=True)
class Seat:
    """Types one trace after the other; `log` holds the outcomes of the requests."""

    address: HostAddress
    settings: Settings
    log: list[HostRequest] = field(default_factory=list)
    _files: OpenFiles = field(init=False)
    _link: CountingLink = field(init=False)
    _completer: InlineCompleter = field(init=False)
    _screen: Screen = field(init=False)
    _trace: Trace = field(init=False)
    _why: str = ""  # why there is no host
    _shown: str = ""  # the id of the completion on the screen
    _asking: asyncio.Task[None] | None = None

    def __post_init__(self) -> None:
        self._files = OpenFiles(f"file:///bench/{uuid.uuid4().hex}/")
        workspace = workspace_of(self._files.documents, self._files.root)
        workspace.settings = self.settings
        workspace.permissions = _AllPermitted(self.settings, self._files.root)
        self._link = CountingLink(
            self.log, workspace, WorkspaceFiles(workspace, nothing), self._find, self._note
        )
        self._link.search.patience_s = _READY_S
        self._completer = InlineCompleter(workspace, self._link, nothing)
        self._completer.places = _PlacesByText()

    @property
    def is_waiting(self) -> bool:
        return any(request.outcome is None for request in self.log)

    async def take(self) -> None:
        """Find the host. Raises ServerError if it serves nobody."""
        self._link.search.begin()
        if (state := await self._link.search.ready()) != "ready":
            where = f"the completion host on {self.address.endpoint} is {state}"
            raise ServerError(f"{where}: {self._why}" if self._why else where)

    async def turn_to(self, trace: Trace) -> None:
        self._cancel()
        self._trace = trace
        for uri in self._files.turn_to(trace):
            self._completer.forget(uri)
        await self._link.documents.retract()

    def watch(self, screen: Screen) -> None:
        self._screen = screen
        self._type(self._trace.approach)

    def press(self, action: Action) -> None:
        if action.kind == "all" and self._shown:
            self._link.tell(self._shown, "accepted")
            self._shown = ""
        self._type(action.text)

    async def leave(self) -> None:
        self._cancel()
        await self._link.leave()

    def _note(self, report: LinkReport) -> None:
        self._why = report.problem.message if report.problem else ""

    async def _find(self) -> HostAddress:
        return self.address

    def _type(self, text: str) -> None:
        self._files.type(text)
        if self._asking is not None:
            self._asking.cancel()
        self._asking = asyncio.create_task(self._ask())

    async def _ask(self) -> None:
        asked_at, text = self._screen.now(), ""
        answer = await self._completer.answer(self._files.question)
        for item in answer if isinstance(answer, list) else ():
            text, command = str(item.insert_text), item.command
            self._show(str(command.arguments[0] if command and command.arguments else ""))
        self._screen.show(text, self._screen.now() - asked_at)

    def _show(self, completion_id: str) -> None:
        former, self._shown = self._shown, completion_id
        if former != completion_id:
            if former:
                self._link.tell(former, "rejected")
            self._link.tell(completion_id, "shown")

    def _cancel(self) -> None:
        self._completer.stop_all()
        if self._asking is not None:
            self._asking.cancel()
