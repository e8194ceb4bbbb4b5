"""An editor for tests and benchmarks: a real LSP client of a real `foregram lsp` process."""

import asyncio
import os
import sys
import threading
from asyncio import StreamReader, StreamWriter
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
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
from tests.support.polling import ServerError

KINDS = types.InlineCompletionTriggerKind
SERVER = (sys.executable, "-m", "lsp_server", "lsp", "--stdio")
_ENDING_S = 20.0


class Editor:
    """One document with a cursor, and all messages of the server.

    `uri` and the text `before` and `after` the cursor are those of the document opened last.
    """

    def __init__(self, client: LanguageClient, uri: str) -> None:
        self.client = client
        self.uri = uri
        self.before = self.after = ""
        self.version = 0
        self.messages: list[str] = []
        self.progress: list[str] = []
        self.registered: list[str] = []  # methods that the server registered for
        self.states: list[dict[str, Any]] = []
        self.num_asked_again = 0
        self.on_more_text: Callable[[str, int], None] = ignored
        self.edits: list[types.ApplyWorkspaceEditParams] = []
        self.refuses_edits = ""  # the reason why it applies none
        self.capabilities: types.ServerCapabilities | None = None

    @property
    def text(self) -> str:
        return self.before + self.after

    @property
    def statuses(self) -> list[dict[str, Any]]:
        """The parts of all states that other clients know, too."""
        return [{key: one[key] for key in ("kind", "message", "busy")} for one in self.states]

    @property
    def position(self) -> types.Position:
        return behind(self.before)

    @property
    def process_id(self) -> int:
        process = self.client._server
        assert process is not None
        return process.pid

    def open(self, text: str, language: str = "python") -> None:
        """Open the document with the cursor at `|`."""
        before, _, after = text.partition("|")
        self.open_around(before, after, language)

    def open_around(self, before: str, after: str, language: str = "python") -> None:
        """Open the document with the cursor between two texts."""
        self.before, self.after = before, after
        self.version += 1
        item = types.TextDocumentItem(self.uri, language, self.version, self.text)
        self.client.text_document_did_open(types.DidOpenTextDocumentParams(item))

    def close(self) -> None:
        params = types.DidCloseTextDocumentParams(types.TextDocumentIdentifier(self.uri))
        self.client.text_document_did_close(params)

    def type(self, text: str) -> None:
        self.replace(self.position, self.position, text)
        self.before += text

    def erase(self) -> None:
        """Delete the character, or the line end, before the cursor."""
        end, self.before = self.position, self.before[:-1]
        self.replace(self.position, end, "")

    def replace(self, start: types.Position, end: types.Position, text: str) -> None:
        """Tell the server of a change, which may be at another place than the cursor."""
        self.replace_all(types.Range(start, end), text=text)

    def replace_all(self, *ranges: types.Range, text: str) -> None:
        """Tell the server of changes in one message."""
        self.version += 1
        changes = [types.TextDocumentContentChangePartial(one, text) for one in ranges]
        document = types.VersionedTextDocumentIdentifier(self.version, self.uri)
        params = types.DidChangeTextDocumentParams(document, changes)
        self.client.text_document_did_change(params)

    def ask(self, *, invoked: bool = False, **changes: Any) -> asyncio.Future[Any]:
        """Ask for ghost text, to be cancelled by its `request_id`; return a future of the answer."""
        self._require_server()
        kind = KINDS.Invoked if invoked else KINDS.Automatic
        context = types.InlineCompletionContext(kind, changes.get("selected"))
        params = types.InlineCompletionParams(
            context,
            types.TextDocumentIdentifier(changes.get("uri", self.uri)),
            changes.get("position", self.position),
        )
        method = types.TEXT_DOCUMENT_INLINE_COMPLETION
        answer = self.client.protocol.send_request(method, params, msg_id=changes.get("request_id"))
        return asyncio.wrap_future(answer)

    def cancel(self, request_id: str) -> None:
        self.client.cancel_request(types.CancelParams(request_id))

    async def items(self, **options: Any) -> list[types.InlineCompletionItem]:
        answer = await self.ask(**options)
        return list(
            answer.items if isinstance(answer, types.InlineCompletionList) else answer or ()
        )

    async def run(self, command: str, *arguments: Any) -> Any:
        self._require_server()
        params = types.ExecuteCommandParams(command, arguments=list(arguments))
        return await self.client.workspace_execute_command_async(params)

    def apply(self, params: types.ApplyWorkspaceEditParams) -> types.ApplyWorkspaceEditResult:
        """Note an edit that the server applies; the text stays as it is."""
        self.edits.append(params)
        reason = self.refuses_edits or None
        return types.ApplyWorkspaceEditResult(applied=reason is None, failure_reason=reason)

    def more_text(self, params: Any) -> None:
        """Hear that the server has longer text for a version of a document."""
        self.on_more_text(params.uri, params.version)

    async def reasons(self) -> list[str]:
        return [answer["reason"] for answer in await self.run("foregram.why")]

    def _require_server(self) -> None:
        """Raise ServerError if the server has ended, or a request would wait forever."""
        if self.client.stopped:
            raise ServerError("the language server has ended by itself")


@asynccontextmanager
async def editor(
    *,
    uri: str = "file:///shop/inventory.py",
    root: str = "file:///shop",
    options: object = None,
    settings: object = None,
    capabilities: types.ClientCapabilities | None = None,
    environ: Mapping[str, str] | None = None,
    socket: Path | None = None,
    command: Sequence[str] | None = SERVER,
) -> AsyncIterator[Editor]:
    """Start a server, or find the one of `socket`, and connect an editor.

    Without a `command` the server starts faster, in this process. `settings` answer its requests
    for its configuration. If they are an exception, the editor fails when asked; if an event, it
    waits for the event, and then answers that the server is off.

    A process ends with the block, whatever happens. Raises ServerError if it cannot start or ends
    early, TimeoutError if it had to be killed.
    """
    client = LanguageClient("test editor", "1")
    shown = Editor(client, uri)

    @client.feature(types.WINDOW_SHOW_MESSAGE)
    @client.feature(types.WINDOW_LOG_MESSAGE)
    def note(params: Any) -> None:
        shown.messages.append(params.message)

    @client.feature("didChangeStatus")
    def status(params: Any) -> None:
        shown.states.append(_plain(params))

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

    # pygls sets attributes, which methods do not allow.
    client.feature(types.WORKSPACE_APPLY_EDIT)(partial(shown.apply))
    client.feature("foregram/moreText")(partial(shown.more_text))

    try:
        async with _connected(client, environ or {}, socket, command):
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
    finally:
        await asyncio.wait_for(client.stop(), _ENDING_S)


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
    client: LanguageClient,
    environ: Mapping[str, str],
    socket: Path | None,
    command: Sequence[str] | None,
) -> AsyncIterator[None]:
    if socket is not None:
        _listen(client, *await asyncio.open_unix_connection(socket))
        yield
    elif command is not None:
        async with _process(client, command, environ):
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


@asynccontextmanager
async def _process(
    client: LanguageClient, command: Sequence[str], environ: Mapping[str, str]
) -> AsyncIterator[None]:
    try:
        await client.start_io(*command, env={**os.environ, **environ})
    except OSError as error:
        raise ServerError(f"{command[0]} cannot be started: {error.strerror}") from error
    process = client._server
    assert process is not None
    said = asyncio.ensure_future(_last_words(process))
    try:
        yield
    except RuntimeError as error:  # raised by pygls for requests to a server that ends
        if process.returncode is None:
            raise
        raise ServerError(f"the language server has ended by itself: {await said}") from error
    finally:
        if process.stdin is not None:
            process.stdin.close()
        try:
            await asyncio.wait_for(process.wait(), _ENDING_S)
        finally:
            if process.returncode is None:
                process.kill()
            said.cancel()


async def _last_words(process: Process) -> str:
    """Return the last line of its errors; a full pipe would stop a server at some point."""
    last = b""
    while process.stderr is not None and (more := await process.stderr.read(1 << 12)):
        last = (last + more)[-(1 << 12) :]
    lines = last.decode("utf-8", "replace").strip().splitlines()
    return lines[-1] if lines else f"status {await process.wait()}"


def _listen(client: LanguageClient, reader: StreamReader, writer: StreamWriter) -> None:
    """Listen to the server as pygls listens to a port."""

    async def listen() -> None:
        with closing(writer), suppress(ConnectionError):
            await run_async(client._stop_event, reader, client.protocol)

    client.protocol.set_writer(writer)
    client._async_tasks.append(asyncio.create_task(listen()))


def behind(text: str) -> types.Position:
    """Return the position at the end of `text`."""
    return types.Position(text.count("\n"), utf16_len(text.rpartition("\n")[2]))


def ignored(_uri: str, _version: int) -> None:
    """Take no notice of longer text."""


def utf16_len(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


def _plain(value: Any) -> Any:
    """Return a message as plain JSON; pygls makes named tuples of its objects."""
    if hasattr(value, "_asdict"):
        return {key: _plain(one) for key, one in value._asdict().items()}
    return value
