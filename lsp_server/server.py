"""The language server: its capabilities, and a thin handler for each message."""

import asyncio
import gc
import logging
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import msgspec
from lsprotocol import types

from engine.version import VERSION
from lsp_server import editor_commands
from lsp_server.completion.inline_completer import Answer
from lsp_server.completion.item import ACCEPT_COMMAND, menu_entry
from lsp_server.documents.document import Snapshot
from lsp_server.documents.documents import Documents
from lsp_server.documents.line_buffer import to_code_points
from lsp_server.feedback import (
    CursorParams,
    FocusedParams,
    PartlyAcceptedParams,
    ShownParams,
    WhyParams,
    read,
)
from lsp_server.host.link import READY_S
from lsp_server.loading_progress import IndexProgress, LoadingProgress
from lsp_server.model_choice import check_name
from lsp_server.reasons import SILENCING
from lsp_server.session import INITIAL, Session
from lsp_server.setting_layers import Layer
from lsp_server.status import StatusLine
from lsp_server.transport.connections import OPEN, TOKEN_KEY, Authentication
from lsp_server.transport.protocol import DocumentServer

_LOG = logging.getLogger(__name__)

SECTION = "foregram"
CONFIGURATION = "the editor's settings"
PARTIAL_ACCEPT = "textDocument/didPartiallyAcceptCompletion"
SHOWN = "textDocument/didShowCompletion"
FOCUS = "textDocument/didFocus"
CURSOR = "foregram/cursor"
ASK_AGAIN = "foregram/askAgain"
WHY = "foregram.why"
COST = "foregram.cost"
CHECK_MODEL = "foregram.checkModel"
HOST_USE = "foregram.hostUse"
_SETTINGS_S = 3.0  # to wait for the client's settings before the host is looked for
_MODEL_KEYS = ("model", "FOREGRAM_MODEL")
_KINDS = types.InlineCompletionTriggerKind
_MENU_S = 20.0  # a menu waits for the slowest of its servers
_ASKS_AGAIN = "asksAgain"
# Not settings.
_EDITOR_KEYS = ("editorInfo", "editorPluginInfo", _ASKS_AGAIN, TOKEN_KEY)


class ForegramServer(DocumentServer):
    """One connection's server: a pygls server with a session."""

    def __init__(self, command_line: Layer, authentication: Authentication = OPEN) -> None:
        super().__init__("foregram", VERSION, Documents())
        self._authentication = authentication
        self.status = StatusLine(self, LoadingProgress(self))
        self._is_initialized = False
        self._can_retry = False  # the client knows `foregram/askAgain`
        self._focused = ""  # the URI of the document that the user works in, as far as is known
        self._reported: set[str] = set()
        self.pulls: list[asyncio.Task[None]] = []  # of the client's settings, the newest last
        self.indexing = IndexProgress(self)
        self.session = Session(
            self.documents, command_line, self.status.watch, self._ask_again, self._indexed
        )
        self.session.is_public = authentication.is_public

    def refusal(self, params: types.InitializeParams) -> str | None:
        """Why this client is rejected."""
        return self._authentication.refusal(_options(params))

    async def leave(self) -> None:
        """End the session."""
        for pull in self.pulls:
            pull.cancel()
        await self.session.leave()

    def before_initialize(self, params: types.InitializeParams) -> None:
        """Read the client's options: they decide which capabilities there are."""
        self._authentication.succeeded()
        given = _options(params)
        if isinstance(given, dict):
            self.status.knows_status = "editorInfo" in given
            self._can_retry = self.status.knows_status and given.get(_ASKS_AGAIN) is True
            self.configure(given.get(SECTION, given), INITIAL)
        if self.session.settings.completion_fallback:
            options = types.CompletionOptions(trigger_characters=[".", "(", " "])
            self.feature(types.TEXT_DOCUMENT_COMPLETION, options)(complete_in_menu)
        if self._can_retry:
            self.session.link.patience_s = READY_S
        window = params.capabilities.window
        # A client that knows `askAgain` shows our status: a progress bar beside it is one too many.
        shows_progress = bool(window and window.work_done_progress)
        self.status.progress.is_wanted = shows_progress and not self._can_retry
        self.indexing.is_wanted = shows_progress
        self.session.client_name = params.client_info.name if params.client_info else ""
        self.session.enter(_roots(params))

    def begin(self) -> None:
        """The client takes messages from now on."""
        self._is_initialized = True
        self.focus(self._focused)
        self.report_problems()

    def configure(self, options: object, source: str) -> None:
        """Take over options, and report those that are wrong."""
        if not isinstance(options, Mapping):
            options = {}
        options = {key: value for key, value in options.items() if key not in _EDITOR_KEYS}
        self.session.configure(options, source)
        wrong = (one.message for one in self.session.problems if one.key in _MODEL_KEYS)
        self.status.configure(self.session.settings, next(wrong, ""))
        if self._is_initialized:
            self.focus(self._focused)  # what was switched off may be on now
            self.report_problems()
            self.watch_files()

    def watch_files(self) -> None:
        """Have the client say which files change, where it can and an index is to follow them."""
        workspace = self.client_capabilities.workspace
        watched = workspace.did_change_watched_files if workspace is not None else None
        can_watch = watched is not None and watched.dynamic_registration
        files = self.session.files
        if not can_watch or files.is_watched or not files.is_indexed:
            return
        files.is_watched = True
        watchers = [types.FileSystemWatcher("**/*")]
        options = types.DidChangeWatchedFilesRegistrationOptions(watchers)
        method = types.WORKSPACE_DID_CHANGE_WATCHED_FILES
        registration = types.Registration(uuid.uuid4().hex, method, options)
        self.client_register_capability(types.RegistrationParams([registration]), lambda _: None)

    def focus(self, uri: str) -> None:
        """The user works in this document; "" is none that we know of."""
        is_another, self._focused = uri != self._focused, uri
        self.session.when_judged(partial(self._look_at, uri, is_another=is_another))

    def _look_at(self, uri: str, *, is_another: bool) -> None:
        if uri == self._focused:
            reason = self.session.completer.left_alone(uri) if uri else None
            self.status.looks_at(reason, is_another=is_another)

    def refresh(self, uri: str) -> None:
        """A document was opened or closed: it may be the one that the user works in."""
        if uri == self._focused:
            self.focus(uri)

    async def complete(self, params: types.InlineCompletionParams) -> Answer:
        """Answer a request; the user works in its document."""
        uri = params.text_document.uri
        if uri != self._focused:
            self.focus(uri)
        with self.status.working():
            answer = await self.session.complete(params)
        is_about_document = (
            answer.reason is not None or params.context.trigger_kind is not _KINDS.Invoked
        )
        if is_about_document and uri == self._focused:
            self.status.looks_at(answer.reason)
        return answer

    def _indexed(self, num_read: int, num_files: int, note: str) -> None:
        self.indexing.show(num_read, num_files, note)
        self.status.heed(self.session.files.problem)

    def _ask_again(self) -> None:
        if self._can_retry:
            self.protocol.notify(ASK_AGAIN, {})

    def report_problems(self) -> None:
        """Report what is wrong in the settings, once, even if a client sends it in two ways."""
        problems = {one.message: one for one in self.session.problems}
        news = [str(one) for message, one in problems.items() if message not in self._reported]
        self._reported = set(problems)
        if news:
            text = "; ".join(news)
            params = types.ShowMessageParams(types.MessageType.Warning, f"foregram: {text}")
            self.window_show_message(params)


def create_server(command_line: Layer, authentication: Authentication = OPEN) -> ForegramServer:
    """Build the server of one connection."""
    # pygls' own log holds whole messages, and with them the user's text.
    logging.getLogger("pygls").setLevel(logging.CRITICAL)
    server = ForegramServer(command_line, authentication)
    server.feature(types.INITIALIZED)(initialized)
    server.feature(types.TEXT_DOCUMENT_INLINE_COMPLETION, types.InlineCompletionOptions())(
        complete_inline
    )
    server.feature(types.TEXT_DOCUMENT_DID_CHANGE)(changed)
    server.feature(types.TEXT_DOCUMENT_DID_OPEN)(opened)
    server.feature(types.TEXT_DOCUMENT_DID_CLOSE)(closed)
    server.feature(types.TEXT_DOCUMENT_DID_SAVE)(saved)
    server.feature(types.WORKSPACE_DID_CHANGE_WATCHED_FILES)(files_changed)
    server.feature(types.NOTEBOOK_DOCUMENT_DID_OPEN)(notebook_opened)
    server.feature(types.NOTEBOOK_DOCUMENT_DID_CHANGE)(notebook_changed)
    server.feature(types.NOTEBOOK_DOCUMENT_DID_CLOSE)(notebook_closed)
    server.feature(types.WORKSPACE_DID_CHANGE_CONFIGURATION)(configured)
    server.feature(types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS)(moved)
    server.feature(types.SHUTDOWN)(leaves)
    server.feature(SHOWN)(shown)
    server.feature(PARTIAL_ACCEPT)(partly_accepted)
    server.feature(FOCUS)(focused)
    server.feature(CURSOR)(cursor_rests)
    server.command(ACCEPT_COMMAND)(accepted)
    server.command(WHY)(why)
    server.command(COST)(cost)
    server.command(CHECK_MODEL)(check_model)
    server.command(HOST_USE)(host_use)
    return server


async def initialized(server: ForegramServer, _params: types.InitializedParams) -> None:
    """The client is ready: look for the host, and for the client's settings."""
    if not gc.isenabled():  # the first client of this process
        gc.freeze()  # what was created so far stays, so no collection needs to look through it
        gc.enable()
    server.begin()
    await _pull_settings(server)
    await server.session.connect()
    await server.session.files.begin()
    server.watch_files()


async def complete_inline(
    server: ForegramServer, params: types.InlineCompletionParams
) -> types.InlineCompletionList:
    """Ghost text at a position."""
    answer = await server.complete(params)
    return types.InlineCompletionList(list(answer.items))


async def complete_in_menu(
    server: ForegramServer, params: types.CompletionParams
) -> types.CompletionList:
    """The same text as an entry of the completion menu, for clients without ghost text.

    They send `Invoked` at the start of a word, too. It counts as an explicit request only where
    nothing is suggested automatically: there is no other way to ask for a suggestion there.
    """
    uri = params.text_document.uri
    is_invoked = (
        params.context is None or params.context.trigger_kind is types.CompletionTriggerKind.Invoked
    )
    await server.session.look()
    is_silent = server.session.completer.left_alone(uri) in SILENCING
    kind = _KINDS.Invoked if is_invoked and is_silent else _KINDS.Automatic
    context = types.InlineCompletionContext(kind)
    inline = types.InlineCompletionParams(context, params.text_document, params.position)
    snapshot = server.documents.snapshot(uri)
    answer = Answer()
    with suppress(TimeoutError):
        answer = await asyncio.wait_for(server.complete(inline), _MENU_S)
    entries = []
    if isinstance(snapshot, Snapshot):
        entries = [menu_entry(item, snapshot, params.position) for item in answer.items]
    return types.CompletionList(is_incomplete=True, items=entries)


def opened(server: ForegramServer, params: types.DidOpenTextDocumentParams) -> None:
    """A document was opened."""
    server.refresh(params.text_document.uri)


def changed(server: ForegramServer, params: types.DidChangeTextDocumentParams) -> None:
    """A document was edited."""
    server.session.changed(params.text_document.uri, params.content_changes)


def saved(server: ForegramServer, params: types.DidSaveTextDocumentParams) -> None:
    """A document was written to its file."""
    server.session.files_changed([params.text_document.uri])


def files_changed(server: ForegramServer, params: types.DidChangeWatchedFilesParams) -> None:
    """Files changed, came or went."""
    server.session.files_changed([change.uri for change in params.changes])


async def closed(server: ForegramServer, params: types.DidCloseTextDocumentParams) -> None:
    """A document was closed."""
    server.refresh(params.text_document.uri)
    await server.session.closed(params.text_document.uri)


def notebook_opened(server: ForegramServer, params: types.DidOpenNotebookDocumentParams) -> None:
    """A notebook was opened, and all its cells with it."""
    for cell in params.cell_text_documents:
        server.refresh(cell.uri)


async def notebook_changed(
    server: ForegramServer, params: types.DidChangeNotebookDocumentParams
) -> None:
    """Cells came, went, moved, or were edited."""
    cells = params.change.cells
    if cells is None:
        return
    for content in cells.text_content or ():
        server.session.changed(content.document.uri, content.changes)
    if cells.structure is not None:
        for added in cells.structure.did_open or ():
            server.refresh(added.uri)
        await _close_cells(server, cells.structure.did_close or ())


async def notebook_closed(
    server: ForegramServer, params: types.DidCloseNotebookDocumentParams
) -> None:
    """A notebook was closed, and all its cells with it."""
    await _close_cells(server, params.cell_text_documents)


async def _close_cells(
    server: ForegramServer, cells: Sequence[types.TextDocumentIdentifier]
) -> None:
    for cell in cells:
        server.refresh(cell.uri)
    await server.session.closed(*(cell.uri for cell in cells))


async def configured(server: ForegramServer, params: types.DidChangeConfigurationParams) -> None:
    """The client's settings changed: take those that it sends, or request them."""
    given = msgspec.to_builtins(params.settings) if params.settings is not None else None
    if isinstance(given, dict) and SECTION in given:
        server.configure(given[SECTION], CONFIGURATION)
    else:
        await _pull_settings(server)
    await server.session.connect()


def moved(server: ForegramServer, params: types.DidChangeWorkspaceFoldersParams) -> None:
    """Folders were added or removed."""
    server.session.move(
        added=[folder.uri for folder in params.event.added],
        removed=[folder.uri for folder in params.event.removed],
    )


async def leaves(server: ForegramServer, _params: None) -> None:
    """The client shuts the server down."""
    await server.session.leave()


async def shown(server: ForegramServer, params: object) -> None:
    """A completion is on the screen."""
    if completion_id := read(params, ShownParams).item.completion_id:
        server.session.shown(completion_id)


async def partly_accepted(server: ForegramServer, params: object) -> None:
    """A part of a completion was accepted; the client counts UTF-16 units of its text."""
    message = read(params, PartlyAcceptedParams)
    if completion_id := message.item.completion_id:
        length = to_code_points(str(message.item.insert_text), message.accepted_length)
        server.session.accepted(completion_id, length)


async def focused(server: ForegramServer, params: object) -> None:
    """The user looks at a document, or at none."""
    document = read(params, FocusedParams).text_document
    server.focus("" if document is None else document.uri)
    if document is not None:
        await server.session.focused(document.uri)


async def cursor_rests(server: ForegramServer, params: object) -> None:
    """The cursor was moved, and stays where it is for a moment."""
    message = read(params, CursorParams)
    server.session.rested(message.text_document.uri, message.position)


async def accepted(server: ForegramServer, completion_id: str) -> None:
    """A whole completion was accepted."""
    server.session.accepted(completion_id)


async def why(server: ForegramServer, *arguments: object) -> list[dict[str, Any]] | dict[str, Any]:
    """The last empty answers; with a document, those of it, and what holds now."""
    await server.session.look()
    if not arguments:
        return editor_commands.why(server.session)
    return editor_commands.why_here(server.session, server.status, read(arguments[0], WhyParams))


def cost(server: ForegramServer) -> dict[str, Any]:
    """What the host's last completion cost, without the text."""
    last = server.session.completer.host.last
    return {} if last is None else {"id": last[1].id, **msgspec.to_builtins(last[1].cost)}


def check_model(_server: ForegramServer, name: str) -> dict[str, Any]:
    """Whether a model's name can be used, and which may have been meant."""
    check: dict[str, Any] = msgspec.to_builtins(check_name(name))
    return check


async def host_use(server: ForegramServer) -> dict[str, Any]:
    """How many others a host serves, before somebody stops it."""
    return await editor_commands.host_use(server.session)


async def _pull_settings(server: ForegramServer) -> None:
    workspace = server.client_capabilities.workspace
    if workspace is None or not workspace.configuration:
        return
    pull = asyncio.create_task(_take_settings(server))
    server.pulls.append(pull)
    await asyncio.wait([pull], timeout=_SETTINGS_S)


async def _take_settings(server: ForegramServer) -> None:
    """Take the client's settings whenever they come; if newer ones have, these are out of date."""
    params = types.ConfigurationParams([types.ConfigurationItem(section=SECTION)])
    pull = asyncio.current_task()
    try:
        given = msgspec.to_builtins(await server.workspace_configuration_async(params))
    except Exception as error:  # noqa: BLE001 - a client may fail in any way, or answer anything
        _LOG.warning("the client does not send its settings: %r", error)
        return
    if pull in server.pulls:
        del server.pulls[: server.pulls.index(pull)]
        server.configure(
            given[0] if isinstance(given, list | tuple) and given else {}, CONFIGURATION
        )
        await server.session.connect()


def _options(params: types.InitializeParams) -> object:
    options = params.initialization_options
    return {} if options is None else msgspec.to_builtins(options)


def _roots(params: types.InitializeParams) -> list[str]:
    if params.workspace_folders:
        return [folder.uri for folder in params.workspace_folders]
    return [params.root_uri] if params.root_uri else []
