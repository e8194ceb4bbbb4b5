"""The language server: capabilities and handlers. Each takes a snapshot and calls the session."""

import asyncio
import gc
import logging
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

import msgspec
from lsprotocol import types
from pygls.exceptions import JsonRpcException

from lsp_server.completion.completer import Answer
from lsp_server.completion.cursor import Asked
from lsp_server.completion.item import ACCEPT_COMMAND
from lsp_server.completion.menu_entry import menu_entry
from lsp_server.documents.document import Snapshot
from lsp_server.documents.documents import Documents
from lsp_server.documents.encoding import to_code_points
from lsp_server.feedback import Focused, PartlyAccepted, Shown, read
from lsp_server.language_server_protocol import DocumentServer
from lsp_server.prompt.extent import Trigger
from lsp_server.session import Session
from lsp_server.setting_layers import Layer
from lsp_server.status import StatusLine

_LOG = logging.getLogger(__name__)

SECTION = "foregram"
CONFIGURATION = "the editor's settings"
PARTIAL_ACCEPT = "textDocument/didPartiallyAcceptCompletion"
SHOWN = "textDocument/didShowCompletion"
FOCUS = "textDocument/didFocus"
WHY = "foregram.why"
COST = "foregram.cost"
_COMMANDS = (ACCEPT_COMMAND, WHY, COST)  # which every server has
_SETTINGS_S = 3.0  # to wait for the client's settings
_EDITOR_KEYS = ("editorInfo", "editorPluginInfo")  # Copilot's way to say who asks


class ForegramServer(DocumentServer):
    """One connection's server: a pygls server with a session."""

    def __init__(self, command_line: Layer) -> None:
        super().__init__("foregram", version("foregram"), Documents())
        self.status = StatusLine(self)
        self._is_initialized = False
        self._reported: set[str] = set()
        self.session = Session(self.documents, command_line, self.status.watch)

    def before_initialize(self, params: types.InitializeParams) -> None:
        """Read the client's options: they decide which capabilities there are."""
        options = params.initialization_options
        given = msgspec.to_builtins(options) if options is not None else {}
        if isinstance(given, dict):
            self.status.knows_status = "editorInfo" in given
            self.configure(given.get(SECTION, given), "initializationOptions")
        if self.session.settings.completion_fallback:
            options = types.CompletionOptions(trigger_characters=[".", "(", " "])
            self.feature(types.TEXT_DOCUMENT_COMPLETION, options)(complete_in_menu)
        if self.session.settings.accept_command not in ("", *_COMMANDS):
            self.command(self.session.settings.accept_command)(accepted)
        window = params.capabilities.window
        self.status.shows_progress = bool(window and window.work_done_progress)
        self.session.client_name = params.client_info.name if params.client_info else ""
        self.session.enter(_roots(params))

    def begin(self) -> None:
        """The client takes messages from now on."""
        self._is_initialized = True
        self.report_problems()

    def configure(self, options: object, source: str) -> None:
        """Take options over, and name those that are wrong."""
        if not isinstance(options, Mapping):
            options = {}
        options = {key: value for key, value in options.items() if key not in _EDITOR_KEYS}
        self.session.configure(options, source)
        if self._is_initialized:
            self.status.answered(None)  # what was switched off may be on now: the next key tells
            self.report_problems()

    def report_problems(self) -> None:
        """Name what is wrong in the settings, once, also where a client sends it in two ways."""
        problems = {one.message: one for one in self.session.problems}
        news = [str(one) for message, one in problems.items() if message not in self._reported]
        self._reported = set(problems)
        if news:
            text = "; ".join(news)
            params = types.ShowMessageParams(types.MessageType.Warning, f"foregram: {text}")
            self.window_show_message(params)


def create_server(command_line: Layer) -> ForegramServer:
    """Build the server of one connection."""
    # pygls' own log holds whole messages, and with them the user's text.
    logging.getLogger("pygls").setLevel(logging.CRITICAL)
    server = ForegramServer(command_line)
    server.feature(types.INITIALIZED)(initialized)
    server.feature(types.TEXT_DOCUMENT_INLINE_COMPLETION, types.InlineCompletionOptions())(
        complete_inline
    )
    server.feature(types.TEXT_DOCUMENT_DID_CHANGE)(changed)
    server.feature(types.TEXT_DOCUMENT_DID_CLOSE)(closed)
    server.feature(types.WORKSPACE_DID_CHANGE_CONFIGURATION)(configured)
    server.feature(types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS)(moved)
    server.feature(types.SHUTDOWN)(leaves)
    server.feature(SHOWN)(shown)
    server.feature(PARTIAL_ACCEPT)(partly_accepted)
    server.feature(FOCUS)(focused)
    server.command(ACCEPT_COMMAND)(accepted)
    server.command(WHY)(why)
    server.command(COST)(cost)
    return server


async def initialized(server: ForegramServer, _params: types.InitializedParams) -> None:
    """The client is ready: look for the host, and for the client's settings."""
    gc.freeze()  # what the start has made stays; nothing of it is looked through again
    gc.enable()
    server.begin()
    await _pull_settings(server)
    await server.session.connect()


async def complete_inline(
    server: ForegramServer, params: types.InlineCompletionParams
) -> types.InlineCompletionList:
    """Ghost text at a position."""
    context = params.context
    is_invoked = context.trigger_kind is types.InlineCompletionTriggerKind.Invoked
    asked = Asked(
        params.text_document.uri,
        params.position,
        Trigger.INVOKED if is_invoked else Trigger.AUTOMATIC,
        context.selected_completion_info,
    )
    answer = await _answer(server, asked)
    return types.InlineCompletionList(list(answer.items))


async def complete_in_menu(
    server: ForegramServer, params: types.CompletionParams
) -> types.CompletionList:
    """The same text as an entry of the menu, for clients without ghost text."""
    snapshot = server.documents.snapshot(params.text_document.uri)
    answer = await _answer(server, Asked(params.text_document.uri, params.position))
    entries = []
    if isinstance(snapshot, Snapshot):
        entries = [menu_entry(item, snapshot, params.position) for item in answer.items]
    return types.CompletionList(is_incomplete=True, items=entries)


async def _answer(server: ForegramServer, asked: Asked) -> Answer:
    with server.status.working():
        answer = await server.session.complete(asked)
    server.status.answered(answer.reason)
    return answer


def changed(server: ForegramServer, params: types.DidChangeTextDocumentParams) -> None:
    """A document was edited."""
    server.session.changed(params.text_document.uri, params.content_changes)


async def closed(server: ForegramServer, params: types.DidCloseTextDocumentParams) -> None:
    """A document was closed."""
    await server.session.closed(params.text_document.uri)


async def configured(server: ForegramServer, params: types.DidChangeConfigurationParams) -> None:
    """The client's settings changed: take what it sends, or ask."""
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
    if completion_id := read(params, Shown).item.completion_id:
        await server.session.shown(completion_id)


async def partly_accepted(server: ForegramServer, params: object) -> None:
    """A part of a completion was taken; the client counts UTF-16 units of its text."""
    told = read(params, PartlyAccepted)
    if completion_id := told.item.completion_id:
        text, utf16 = str(told.item.insert_text), types.PositionEncodingKind.Utf16
        length = to_code_points(text, told.accepted_length, utf16)
        await server.session.accepted(completion_id, length)


async def focused(server: ForegramServer, params: object) -> None:
    """The user looks at a document, or at none."""
    if (document := read(params, Focused).text_document) is not None:
        await server.session.focused(document.uri)


async def accepted(server: ForegramServer, completion_id: str) -> None:
    """A completion was taken whole."""
    await server.session.accepted(completion_id)


def why(server: ForegramServer) -> list[dict[str, Any]]:
    """The last empty answers and their reasons."""
    return [
        {**msgspec.to_builtins(answer), "sentence": answer.sentence}
        for answer in server.session.reasons.answers
    ]


def cost(server: ForegramServer) -> dict[str, Any]:
    """What the host said of its last completion, without the text."""
    done = server.session.completer.last
    return {} if done is None else {**msgspec.to_builtins(done), "text": ""}


async def _pull_settings(server: ForegramServer) -> None:
    workspace = server.client_capabilities.workspace
    if workspace is None or not workspace.configuration:
        return
    params = types.ConfigurationParams([types.ConfigurationItem(section=SECTION)])
    try:
        async with asyncio.timeout(_SETTINGS_S):
            given = await server.workspace_configuration_async(params)
    except (TimeoutError, JsonRpcException) as error:  # a client may forget to answer, or fail
        _LOG.warning("the client does not tell its settings: %r", error)
        return
    server.configure(msgspec.to_builtins(given[0]) if given else {}, CONFIGURATION)


def _roots(params: types.InitializeParams) -> list[str]:
    if params.workspace_folders:
        return [folder.uri for folder in params.workspace_folders]
    return [params.root_uri] if params.root_uri else []
