"""An editor for tests: a real LSP client of a real `foregram lsp` process."""

import asyncio
import os
import sys
import threading
from asyncio import StreamReader, StreamWriter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing, suppress
from functools import partial
from pathlib import Path
from socket import socketpair
from typing import Any
from unittest import mock

from lsprotocol import types
from pygls.io_ import run_async
from pygls.lsp.client import LanguageClient

from lsp_server.server import create_server
from lsp_server.setting_layers import Layer
from lsp_server.transport.stream import HEADER_BYTES, serve_connection

KINDS = types.InlineCompletionTriggerKind


class Editor:
    """One document with a cursor, and all messages of the server."""

    def __init__(self, client: LanguageClient, uri: str) -> None:
        self.client = client
        self.uri = uri
        self.text = ""
        self.version = 0
        self.row = self.column = 0
        self.messages: list[str] = []
        self.progress: list[str] = []
        self.registered: list[str] = []  # methods that the server registered for
        self.statuses: list[Any] = []
        self.states: list[dict[str, Any]] = []  # the same, in full
        self.num_asked_again = 0
        self.capabilities: types.ServerCapabilities | None = None

    def open(self, text: str, language: str = "python") -> None:
        """Open the document with the cursor at `|`."""
        before, _, after = text.partition("|")
        self.text = before + after
        self.row, self.column = before.count("\n"), len(before.rpartition("\n")[2])
        self.version += 1
        item = types.TextDocumentItem(self.uri, language, self.version, self.text)
        self.client.text_document_did_open(types.DidOpenTextDocumentParams(item))

    def close(self) -> None:
        params = types.DidCloseTextDocumentParams(types.TextDocumentIdentifier(self.uri))
        self.client.text_document_did_close(params)

    def type(self, text: str) -> None:
        self._replace(self.row, self.column, text)

    def erase(self) -> None:
        """Delete the character, or the line end, before the cursor."""
        if self.column:
            self._replace(self.row, self.column - 1, "")
        else:
            self._replace(self.row - 1, len(self.text.split("\n")[self.row - 1]), "")

    def _replace(self, row: int, column: int, text: str) -> None:
        """Replace the text from a place up to the cursor, and move the cursor behind `text`."""
        self.version += 1
        where = types.Range(types.Position(row, column), types.Position(self.row, self.column))
        change = types.TextDocumentContentChangePartial(where, text)
        document = types.VersionedTextDocumentIdentifier(self.version, self.uri)
        params = types.DidChangeTextDocumentParams(document, [change])
        self.client.text_document_did_change(params)
        lines = self.text.split("\n")
        lines[row : self.row + 1] = [lines[row][:column] + text + lines[self.row][self.column :]]
        self.text = "\n".join(lines)
        *above, last = text.split("\n")
        self.row = row + len(above)
        self.column = len(last) + (0 if above else column)

    def ask(self, *, invoked: bool = False, **changes: Any) -> asyncio.Future[Any]:
        """Ask for ghost text; return a future of the answer."""
        kind = KINDS.Invoked if invoked else KINDS.Automatic
        context = types.InlineCompletionContext(kind, changes.pop("selected", None))
        params = types.InlineCompletionParams(
            context,
            types.TextDocumentIdentifier(changes.get("uri", self.uri)),
            changes.get("position", types.Position(self.row, self.column)),
        )
        return asyncio.ensure_future(self.client.text_document_inline_completion_async(params))

    def ask_as(self, request_id: str) -> asyncio.Future[Any]:
        """Ask under an id that can cancel the request."""
        context = types.InlineCompletionContext(KINDS.Automatic)
        where = types.TextDocumentIdentifier(self.uri), types.Position(self.row, self.column)
        params = types.InlineCompletionParams(context, *where)
        method = types.TEXT_DOCUMENT_INLINE_COMPLETION
        answer = self.client.protocol.send_request(method, params, msg_id=request_id)
        return asyncio.wrap_future(answer)

    def cancel(self, request_id: str) -> None:
        self.client.cancel_request(types.CancelParams(request_id))

    async def items(self, **options: Any) -> list[types.InlineCompletionItem]:
        answer = await self.ask(**options)
        return list(answer.items if isinstance(answer, types.InlineCompletionList) else answer)

    async def run(self, command: str, *arguments: Any) -> Any:
        params = types.ExecuteCommandParams(command, arguments=list(arguments))
        return await self.client.workspace_execute_command_async(params)

    async def reasons(self) -> list[str]:
        return [answer["reason"] for answer in await self.run("foregram.why")]


@asynccontextmanager
async def editor(
    *,
    uri: str = "file:///shop/inventory.py",
    root: str = "file:///shop",
    options: object = None,
    settings: object = None,
    capabilities: types.ClientCapabilities | None = None,
    environ: dict[str, str] | None = None,
    socket: Path | None = None,
    is_process: bool = True,
) -> AsyncIterator[Editor]:
    """Start a server, or find the one of `socket`, and connect an editor.

    In the test's own process it starts faster: each connection to a socket then gets this server.
    `settings` answer the server's requests for its configuration.

    If `settings` is an exception, the editor fails when asked; if an event, it waits for the event,
    and then answers that the server is off.
    """
    client = LanguageClient("test editor", "1")
    shown = Editor(client, uri)

    @client.feature(types.WINDOW_SHOW_MESSAGE)
    @client.feature(types.WINDOW_LOG_MESSAGE)
    def note(params: Any) -> None:
        shown.messages.append(params.message)

    @client.feature("didChangeStatus")
    def status(params: Any) -> None:
        told = _plain(params)
        shown.states.append(told)
        shown.statuses.append({key: told[key] for key in ("kind", "message", "busy")})

    @client.feature("foregram/askAgain")
    def ask_again(_params: Any) -> None:
        shown.num_asked_again += 1

    @client.feature(types.PROGRESS)
    def progress(params: Any) -> None:
        shown.progress.append(params.value["kind"])

    @client.feature(types.WINDOW_WORK_DONE_PROGRESS_CREATE)
    def create(_params: Any) -> None:
        shown.progress.append("create")

    @client.feature(types.CLIENT_REGISTER_CAPABILITY)
    def register(params: types.RegistrationParams) -> None:
        shown.registered += [one.method for one in params.registrations]

    @client.feature(types.WORKSPACE_CONFIGURATION)
    async def configuration(_params: Any) -> list[Any]:
        if isinstance(settings, Exception):
            raise settings
        if isinstance(settings, threading.Event):
            await asyncio.to_thread(settings.wait)
            return [{"enable": False}]
        return [settings]

    async with _connected(client, environ or {}, socket, is_process=is_process):
        try:
            params = types.InitializeParams(
                capabilities or types.ClientCapabilities(),
                root_uri=root,
                initialization_options=options,
                client_info=types.ClientInfo("test editor"),
            )
            shown.capabilities = (await client.initialize_async(params)).capabilities
            client.initialized(types.InitializedParams())
            yield shown
            await client.shutdown_async(None)
        finally:
            client.exit(None)
            await asyncio.wait_for(client.stop(), 20)


def hostless(folder: Path) -> dict[str, str]:
    """Return an environment in which a server finds no host, and nothing of the user's own."""
    return {
        "FOREGRAM_RUNTIME": str(folder / "run"),
        "FOREGRAM_CACHE": str(folder / "cache"),
        "FOREGRAM_CONFIG": os.devnull,  # read before the files under `HOME` and `XDG_CONFIG_HOME`
        "FOREGRAM_HOST_URL": "http://127.0.0.1:9",
        "HOME": str(folder),
    }


@asynccontextmanager
async def _connected(
    client: LanguageClient, environ: dict[str, str], socket: Path | None, *, is_process: bool
) -> AsyncIterator[None]:
    if socket is not None:
        _listen(client, *await asyncio.open_unix_connection(socket))
        yield
    elif is_process:
        command = [sys.executable, "-m", "lsp_server", "lsp", "--stdio"]
        await client.start_io(*command, env=os.environ | environ)
        yield
    else:
        ours, theirs = socketpair()
        with mock.patch.dict(os.environ, environ):
            stream = await asyncio.open_connection(sock=theirs, limit=HEADER_BYTES)
            create = partial(create_server, Layer("command line", {}))
            serving = asyncio.create_task(serve_connection(create, *stream))
            _listen(client, *await asyncio.open_connection(sock=ours))
            try:
                yield
            finally:
                await serving


def _listen(client: LanguageClient, reader: StreamReader, writer: StreamWriter) -> None:
    """Listen to the server as pygls listens to a port."""

    async def listen() -> None:
        with closing(writer), suppress(ConnectionError):
            await run_async(client._stop_event, reader, client.protocol)

    client.protocol.set_writer(writer)
    client._async_tasks.append(asyncio.create_task(listen()))


def _plain(value: Any) -> Any:
    """Return a message as plain JSON; pygls makes named tuples of its objects."""
    if hasattr(value, "_asdict"):
        return {key: _plain(one) for key, one in value._asdict().items()}
    return value
