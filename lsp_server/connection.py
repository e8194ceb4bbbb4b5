"""One client's server: its options and settings, and what depends on what the client can do."""

import asyncio
import logging
import uuid
from collections.abc import Mapping
from contextlib import suppress
from functools import partial

import msgspec
from lsprotocol import types

from engine import VERSION
from lsp_server.completion.item import menu_entry
from lsp_server.documents.document import Snapshot
from lsp_server.documents.documents import Documents
from lsp_server.edits.edit_command import EditCommand
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
        self._pulls: list[
            asyncio.Task[None]
        ] = []  # requests for the client's settings, newest last
        self.status = StatusLine(self)
        self.session = Session(self.documents, command_line, self.status)
        self.edit_command = EditCommand(self, self.session.asked_edits, self.status.working)

    async def leave(self) -> None:
        """End the session."""
        for pull in self._pulls:
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
            self.feature(types.TEXT_DOCUMENT_COMPLETION, options)(partial(self._complete_in_menu))
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

    async def pull_settings(self) -> None:
        """Request the client's settings, if it can send them."""
        workspace = self.client_capabilities.workspace
        if workspace is None or not workspace.configuration:
            return
        pull = asyncio.create_task(self._take_settings())
        self._pulls.append(pull)
        await asyncio.wait([pull], timeout=_SETTINGS_S)

    async def _take_settings(self) -> None:
        """Apply the client's settings when they arrive, unless newer ones came first."""
        params = types.ConfigurationParams([types.ConfigurationItem(section=SECTION)])
        pull = asyncio.current_task()
        try:
            given = msgspec.to_builtins(await self.workspace_configuration_async(params))
        except Exception as error:  # noqa: BLE001 - a client may fail in any way, or answer anything
            _LOG.warning("the client does not send its settings: %r", error)
            return
        if pull in self._pulls:
            del self._pulls[: self._pulls.index(pull)]
            self.configure(
                given[0] if isinstance(given, list | tuple) and given else {}, CONFIGURATION
            )
            await self.session.connect()

    async def _complete_in_menu(self, params: types.CompletionParams) -> types.CompletionList:
        """Return the suggestion as a menu entry, for clients without ghost text."""
        uri = params.text_document.uri
        is_invoked = (
            params.context is None
            or params.context.trigger_kind is types.CompletionTriggerKind.Invoked
        )
        await self.session.workspace.look()
        # Clients also send `Invoked` as a word begins: it counts only where nothing comes by itself.
        is_silent = self.session.workspace.left_alone(uri) in SILENCING
        kind = _KINDS.Invoked if is_invoked and is_silent else _KINDS.Automatic
        context = types.InlineCompletionContext(kind)
        inline = types.InlineCompletionParams(context, params.text_document, params.position)
        snapshot = self.documents.snapshot(uri)
        entries: list[types.CompletionItem] = []
        with suppress(TimeoutError):
            found = await asyncio.wait_for(self.session.complete(inline), _MENU_S)
            if isinstance(snapshot, Snapshot):
                entries = [menu_entry(item, snapshot, params.position) for item in found.items]
        return types.CompletionList(is_incomplete=True, items=entries)


def _roots(params: types.InitializeParams) -> list[str]:
    if params.workspace_folders:
        return [folder.uri for folder in params.workspace_folders]
    return [params.root_uri] if params.root_uri else []
