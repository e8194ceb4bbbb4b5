"""The language server: its capabilities and a thin handler for each message."""

import asyncio
import gc
import logging
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

import msgspec
from lsprotocol import types

from engine import VERSION
from engine.model_names import title_of
from lsp_server.completion.item import ACCEPT_COMMAND, menu_entry
from lsp_server.documents.document import Snapshot
from lsp_server.documents.documents import Documents
from lsp_server.documents.line_buffer import to_code_points
from lsp_server.edits.code_actions import KINDS, code_actions
from lsp_server.edits.edit_command import EDIT_COMMAND, EditCommand
from lsp_server.edits.messages import ACCEPT, IGNORE, REJECT, InlineEditParams, ShownParams
from lsp_server.feedback import ItemParams, PlaceParams, read
from lsp_server.host.client import host_status
from lsp_server.host.search import READY_S
from lsp_server.reasons import SILENCING
from lsp_server.session import INITIAL, Session
from lsp_server.setting_layers import Layer
from lsp_server.status import StatusLine
from lsp_server.transport.protocol import DocumentServer

_LOG = logging.getLogger(__name__)

SECTION = "foregram"
CONFIGURATION = "the editor's settings"
_SETTINGS_S = 3.0  # seconds to wait for the client's settings before searching for a host
_MODEL_KEYS = ("model", "FOREGRAM_MODEL")
_KINDS = types.InlineCompletionTriggerKind
_MENU_S = 20.0  # seconds; an editor's menu waits for its slowest server
_ASKS_AGAIN = "asksAgain"
_EDITOR_KEYS = ("editorInfo", "editorPluginInfo", _ASKS_AGAIN)  # options that are not settings


class ForegramServer(DocumentServer):
    """One connection's server: a pygls server with a session."""

    def __init__(self, command_line: Layer) -> None:
        super().__init__("foregram", VERSION, Documents())
        self._is_initialized = False
        self._reported: set[str] = set()
        self.pulls: list[asyncio.Task[None]] = []  # requests for the client's settings, newest last
        self.status = StatusLine(self)
        self.session = Session(self.documents, command_line, self.status)
        self.edit_command = EditCommand(self, self.session.asked_edits, self.status.working)

    async def leave(self) -> None:
        """End the session."""
        for pull in self.pulls:
            pull.cancel()
        await self.session.leave()

    def before_initialize(self, params: types.InitializeParams) -> None:
        """Read the client's options, which decide the capabilities offered."""
        given = msgspec.to_builtins(params.initialization_options) or {}
        if isinstance(given, dict):
            self.status.knows_status = "editorInfo" in given
            self.status.can_ask_again = "editorInfo" in given and given.get(_ASKS_AGAIN) is True
            self.configure(given.get(SECTION, given), INITIAL)
        if self.session.settings.completion_fallback:
            options = types.CompletionOptions(trigger_characters=[".", "(", " "])
            self.feature(types.TEXT_DOCUMENT_COMPLETION, options)(complete_in_menu)
        if self.status.can_ask_again:
            self.session.link.search.patience_s = READY_S
        window = params.capabilities.window
        # A client that knows `askAgain` shows our status, so it needs no progress bar.
        shows_progress = bool(window and window.work_done_progress)
        self.status.loading.is_wanted = shows_progress and not self.status.can_ask_again
        self.status.indexing.is_wanted = shows_progress
        self.session.workspace.client_name = params.client_info.name if params.client_info else ""
        self.session.enter(_roots(params))

    def begin(self) -> None:
        """Start sending messages to the client."""
        self._is_initialized = True
        self.session.refresh()
        self.report_problems()

    def configure(self, options: object, source: str) -> None:
        """Apply options and report invalid ones."""
        if not isinstance(options, Mapping):
            options = {}
        options = {key: value for key, value in options.items() if key not in _EDITOR_KEYS}
        self.session.configure(options, source)
        wrong = (one.message for one in self.session.problems if one.key in _MODEL_KEYS)
        self.status.configure(self.session.settings, next(wrong, ""))
        if self._is_initialized:
            self.session.refresh()  # completion may have been switched on
            self.report_problems()
            self.watch_files()

    def watch_files(self) -> None:
        """Ask the client to report changed files, if it can and an index needs them."""
        workspace = self.client_capabilities.workspace
        watched = workspace.did_change_watched_files if workspace is not None else None
        can_watch = watched is not None and watched.dynamic_registration
        files, wanted = self.session.files, self.session.settings.repository_globs
        if not can_watch or files.is_watched or wanted is None:
            return
        files.is_watched = True
        watchers = [types.FileSystemWatcher("**/*")]
        options = types.DidChangeWatchedFilesRegistrationOptions(watchers)
        method = types.WORKSPACE_DID_CHANGE_WATCHED_FILES
        registration = types.Registration(uuid.uuid4().hex, method, options)
        self.client_register_capability(types.RegistrationParams([registration]), lambda _: None)

    def report_problems(self) -> None:
        """Report each problem in the settings once, even if the client sends it twice."""
        problems = {one.message: one for one in self.session.problems}
        news = [str(one) for message, one in problems.items() if message not in self._reported]
        self._reported = set(problems)
        if news:
            text = "; ".join(news)
            params = types.ShowMessageParams(types.MessageType.Warning, f"foregram: {text}")
            self.window_show_message(params)


async def initialized(server: ForegramServer, _params: types.InitializedParams) -> None:
    """Fetch the client's settings, then connect to the host."""
    if not gc.isenabled():  # the first client of this process
        gc.freeze()  # objects created so far are permanent: no collection needs to scan them
        gc.enable()
    server.begin()
    with suppress(asyncio.CancelledError):  # on Ctrl-C pygls would print a stack trace
        await _pull_settings(server)
        await server.session.connect()
        await server.session.files.begin()
        server.watch_files()


async def complete_in_menu(
    server: ForegramServer, params: types.CompletionParams
) -> types.CompletionList:
    """Return the suggestion as a menu entry, for clients without ghost text."""
    uri = params.text_document.uri
    is_invoked = (
        params.context is None or params.context.trigger_kind is types.CompletionTriggerKind.Invoked
    )
    await server.session.workspace.look()
    # Clients also send `Invoked` as a word begins: it counts only where nothing comes by itself.
    is_silent = server.session.completer.left_alone(uri) in SILENCING
    kind = _KINDS.Invoked if is_invoked and is_silent else _KINDS.Automatic
    context = types.InlineCompletionContext(kind)
    inline = types.InlineCompletionParams(context, params.text_document, params.position)
    snapshot = server.documents.snapshot(uri)
    entries: list[types.CompletionItem] = []
    with suppress(TimeoutError):
        found = await asyncio.wait_for(server.session.complete(inline), _MENU_S)
        if isinstance(snapshot, Snapshot):
            entries = [menu_entry(item, snapshot, params.position) for item in found.items]
    return types.CompletionList(is_incomplete=True, items=entries)


def notebook_changed(server: ForegramServer, params: types.DidChangeNotebookDocumentParams) -> None:
    """Handle added, removed, moved and edited cells."""
    cells = params.change.cells
    if cells is None:
        return
    for content in cells.text_content or ():
        server.session.changed(content.document.uri, content.changes)
    if cells.structure is not None:
        for added in cells.structure.did_open or ():
            server.session.opened([added.uri])
        server.session.closed(*(one.uri for one in cells.structure.did_close or ()))


async def configured(server: ForegramServer, params: types.DidChangeConfigurationParams) -> None:
    """Apply the changed settings that the client sends, or request them."""
    given = msgspec.to_builtins(params.settings) if params.settings is not None else None
    if isinstance(given, dict) and SECTION in given:
        server.configure(given[SECTION], CONFIGURATION)
    else:
        await _pull_settings(server)
    await server.session.connect()


async def leaves(server: ForegramServer, _params: None) -> None:
    """End the session when the client sends `shutdown`."""
    await server.session.leave()


def shown(server: ForegramServer, params: object) -> None:
    """Record that a completion is on the screen."""
    if completion_id := read(params, ItemParams).item.completion_id:
        server.session.shown(completion_id)


def partly_accepted(server: ForegramServer, params: object) -> None:
    """Record a partial acceptance, whose length the client counts in UTF-16 units."""
    message = read(params, ItemParams)
    if completion_id := message.item.completion_id:
        length = to_code_points(str(message.item.insert_text), message.accepted_length)
        server.session.accepted(completion_id, length)


async def focused(server: ForegramServer, params: object) -> None:
    """Record which document the user looks at, if any."""
    document = read(params, PlaceParams).text_document
    if document is None:
        server.session.focus("")
    else:
        await server.session.looked_at(document.uri)


def cursor_rests(server: ForegramServer, params: object) -> None:
    """Prepare for a request where the cursor has come to rest."""
    place = read(params, PlaceParams)
    if place.text_document is not None and place.position is not None:
        server.session.rested(place.text_document.uri, place.position)


def accepted(server: ForegramServer, completion_id: str) -> None:
    """Record that a whole completion was accepted."""
    server.session.accepted(completion_id)


async def edit(server: ForegramServer, *arguments: object) -> dict[str, Any] | None:
    """Change lines as asked in words."""
    return await server.edit_command.run(arguments[0] if arguments else None)


async def next_edit(server: ForegramServer, params: object) -> dict[str, Any]:
    """Return the next edit, if one is likely."""
    return await server.session.next_edits.answer(read(params, InlineEditParams))


def next_edit_shown(server: ForegramServer, params: object) -> None:
    """Record that a next edit is on the screen."""
    if proposal_id := read(params, ShownParams).item.completion_id:
        server.session.next_edits.proposals.shown(proposal_id)


def offered_actions(
    server: ForegramServer, params: types.CodeActionParams
) -> list[types.CodeAction]:
    """Return the edits that a menu offers for a selection and its diagnostics."""
    document = server.documents.snapshot(params.text_document.uri)
    if isinstance(document, Snapshot) and (actions := code_actions(params, document)):
        return actions if server.session.asked_edits.may_offer(document) else []
    return []


async def why(server: ForegramServer, *arguments: object) -> list[dict[str, Any]] | dict[str, Any]:
    """Return the last empty answers; for a document, its own and its present state."""
    await server.session.workspace.look()
    about = read(arguments[0], PlaceParams) if arguments else PlaceParams()
    if about.text_document is None:
        return [answer.shown() for answer in server.session.answers.kept]
    line = about.position.line + 1 if about.position else None
    return server.session.why_here(about.text_document.uri, line)


def cost(server: ForegramServer) -> dict[str, Any]:
    """Return the cost of the host's last completion, without its text."""
    last = server.session.link.last
    return {} if last is None else {"id": last[1].id, **msgspec.to_builtins(last[1].cost)}


def check_model(_server: ForegramServer, name: str) -> dict[str, Any]:
    """Return whether a model's name is usable, and similar names."""
    from lsp_server.model_choice import check_name  # noqa: PLC0415 - no start waits for it

    return check_name(name)


def models(_server: ForegramServer) -> list[dict[str, str]]:
    """Return the models to choose from."""
    from lsp_server.model_choice import offered_models  # noqa: PLC0415 - no start waits for it

    return offered_models()


async def host_use(server: ForegramServer) -> dict[str, Any]:
    """Return the host's model and number of other clients, to show before stopping it."""
    session = server.session
    status = (await host_status(session.settings, session.link.known_as)).status
    if status is None:
        return {"running": False, "model": "", "numOtherClients": 0}
    model = status.model or title_of(status.requested_model)
    return {"running": True, "model": model, "numOtherClients": status.num_other_clients}


async def _pull_settings(server: ForegramServer) -> None:
    workspace = server.client_capabilities.workspace
    if workspace is None or not workspace.configuration:
        return
    pull = asyncio.create_task(_take_settings(server))
    server.pulls.append(pull)
    await asyncio.wait([pull], timeout=_SETTINGS_S)


async def _take_settings(server: ForegramServer) -> None:
    """Apply the client's settings when they arrive, unless newer ones came first."""
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


def _roots(params: types.InitializeParams) -> list[str]:
    if params.workspace_folders:
        return [folder.uri for folder in params.workspace_folders]
    return [params.root_uri] if params.root_uri else []


_HANDLERS: dict[str, Callable[..., object]] = {
    types.INITIALIZED: initialized,
    types.SHUTDOWN: leaves,
    types.TEXT_DOCUMENT_DID_CHANGE: lambda ls, params: ls.session.changed(
        params.text_document.uri, params.content_changes
    ),
    types.TEXT_DOCUMENT_DID_CLOSE: lambda ls, params: ls.session.closed(params.text_document.uri),
    types.TEXT_DOCUMENT_DID_OPEN: lambda ls, params: ls.session.opened([params.text_document.uri]),
    types.TEXT_DOCUMENT_DID_SAVE: lambda ls, params: ls.session.files_changed(
        [params.text_document.uri]
    ),
    types.NOTEBOOK_DOCUMENT_DID_CHANGE: notebook_changed,
    types.NOTEBOOK_DOCUMENT_DID_CLOSE: lambda ls, params: ls.session.closed(
        *(cell.uri for cell in params.cell_text_documents)
    ),
    types.NOTEBOOK_DOCUMENT_DID_OPEN: lambda ls, params: ls.session.opened(
        cell.uri for cell in params.cell_text_documents
    ),
    types.WORKSPACE_DID_CHANGE_CONFIGURATION: configured,
    types.WORKSPACE_DID_CHANGE_WATCHED_FILES: lambda ls, params: ls.session.files_changed(
        [change.uri for change in params.changes]
    ),
    types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS: lambda ls, params: ls.session.move(
        added=[folder.uri for folder in params.event.added],
        removed=[folder.uri for folder in params.event.removed],
    ),
    types.WINDOW_WORK_DONE_PROGRESS_CANCEL: lambda ls, params: ls.edit_command.cancel(params.token),
    "foregram/cursor": cursor_rests,
    "textDocument/copilotInlineEdit": next_edit,
    "textDocument/didFocus": focused,
    "textDocument/didPartiallyAcceptCompletion": partly_accepted,
    "textDocument/didShowCompletion": shown,
    "textDocument/didShowInlineEdit": next_edit_shown,
}
_COMMANDS: dict[str, Callable[..., object]] = {
    ACCEPT_COMMAND: accepted,
    ACCEPT: lambda ls, proposal_id: ls.session.next_edits.accepted(proposal_id),
    REJECT: lambda ls, proposal_id: ls.session.next_edits.proposals.rejected(proposal_id),
    IGNORE: lambda ls, proposal_id: ls.session.next_edits.proposals.ignored(proposal_id),
    EDIT_COMMAND: edit,
    "foregram.checkModel": check_model,
    "foregram.cost": cost,
    "foregram.hostUse": host_use,
    "foregram.models": models,
    "foregram.why": why,
}


def create_server(command_line: Layer) -> ForegramServer:
    """Build the server for one connection."""
    # pygls logs whole messages, including the user's text.
    logging.getLogger("pygls").setLevel(logging.CRITICAL)
    server = ForegramServer(command_line)
    complete = partial(server.session.complete)  # pygls sets attributes, which methods do not allow
    options = types.InlineCompletionOptions()
    server.feature(types.TEXT_DOCUMENT_INLINE_COMPLETION, options)(complete)
    actions = types.CodeActionOptions(code_action_kinds=list(KINDS))
    server.feature(types.TEXT_DOCUMENT_CODE_ACTION, actions)(offered_actions)
    for method, handler in _HANDLERS.items():
        server.feature(method)(handler)
    for name, handler in _COMMANDS.items():
        server.command(name)(handler)
    return server
