"""An editor from the language server's side: one cursor, and the messages that keys cause."""

import asyncio
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from itertools import count
from typing import Any

from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pygls.lsp.client import LanguageClient

from engine.errors import ForegramError
from tests.bench.simulated.processes import ended

_KINDS = types.InlineCompletionTriggerKind
_ENDING_S = 5.0


class BenchError(ForegramError):
    """A server did not do what a benchmark needs."""

    code = "bench_failed"


class Editor:
    """A client with one cursor. Rows and columns count from 0, columns in UTF-16 units."""

    def __init__(self, client: LanguageClient, process_id: int) -> None:
        self.process_id = process_id
        self.uri, self.row, self.column = "", 0, 0
        self._client = client
        self._version = 1
        self._ids = count(1)
        self._asked: str | None = None  # the id of the unanswered request

    def open(self, uri: str, text: str, language_id: str = "python") -> None:
        document = types.TextDocumentItem(uri, language_id, 1, text)
        self._client.text_document_did_open(types.DidOpenTextDocumentParams(document))

    def close(self, uri: str) -> None:
        identifier = types.TextDocumentIdentifier(uri)
        self._client.text_document_did_close(types.DidCloseTextDocumentParams(identifier))

    def place(self, uri: str, row: int, column: int) -> None:
        self.uri, self.row, self.column = uri, row, column

    def place_behind(self, uri: str, text: str) -> None:
        """Put the cursor behind `text`, with which the document begins."""
        there = behind(text)
        self.place(uri, there.line, there.character)

    def type(self, text: str) -> None:
        self.insert(self.uri, self.row, self.column, text)
        there = behind(text, types.Position(self.row, self.column))
        self.place(self.uri, there.line, there.character)

    def insert(self, uri: str, row: int, column: int, text: str) -> None:
        self._version += 1
        position = types.Position(row, column)
        change = types.TextDocumentContentChangePartial(types.Range(position, position), text)
        document = types.VersionedTextDocumentIdentifier(self._version, uri)
        self._client.text_document_did_change(types.DidChangeTextDocumentParams(document, [change]))

    async def items(self, *, invoked: bool = False) -> Sequence[types.InlineCompletionItem] | None:
        """Ask at the cursor and cancel the former request. None: a newer one replaced this."""
        self._require_server()
        self.cancel()
        context = types.InlineCompletionContext(_KINDS.Invoked if invoked else _KINDS.Automatic)
        params = types.InlineCompletionParams(
            context,
            types.TextDocumentIdentifier(self.uri),
            types.Position(self.row, self.column),
        )
        asked = self._asked = f"completion-{next(self._ids)}"
        try:
            answer = await self._client.protocol.send_request_async(
                types.TEXT_DOCUMENT_INLINE_COMPLETION, params, asked
            )
        except JsonRpcException:
            if self._asked == asked:
                raise
            return None
        if self._asked != asked:
            return None
        self._asked = None
        return answer.items if isinstance(answer, types.InlineCompletionList) else answer or ()

    def cancel(self) -> None:
        if self._asked is not None:
            self._client.cancel_request(types.CancelParams(self._asked))
            self._asked = None

    async def complete(self, *, invoked: bool = False) -> str | None:
        items = await self.items(invoked=invoked)
        return str(items[0].insert_text) if items else None

    async def execute(self, command: str, *arguments: object) -> Any:
        self._require_server()
        params = types.ExecuteCommandParams(command, arguments=list(arguments) or None)
        return await self._client.workspace_execute_command_async(params)

    def notify(self, method: str, **params: object) -> None:
        """Send a message that LSP lacks."""
        self._client.protocol.notify(method, params)

    async def last_cost(self) -> dict[str, Any]:
        return dict(await self.execute("foregram.cost") or {})

    async def ping(self) -> None:
        """Wait until the server has handled all messages so far."""
        await self.execute("foregram.why")

    def _require_server(self) -> None:
        """Raise BenchError if the server has ended, or a request would wait forever."""
        if self._client.stopped:
            raise BenchError("the language server has ended by itself")


@asynccontextmanager
async def opened_editor(
    command: Sequence[str],
    environ: Mapping[str, str],
    root_uri: str,
    settings: Mapping[str, object] | None = None,
) -> AsyncIterator[Editor]:
    """Start a language server for a workspace, and end it with the block, whatever happens.

    `settings` are those of the editor. Raises BenchError if the server cannot start, or ends early.
    """
    client = LanguageClient("foregram-bench", "1")
    client.feature(types.WINDOW_LOG_MESSAGE)(lambda _params: None)  # otherwise pygls reports each
    process = await _started(client, command, environ)
    said = asyncio.ensure_future(_said(process))
    try:
        options: dict[str, object] = {"foregram": dict(settings or {})}
        params = types.InitializeParams(
            types.ClientCapabilities(), root_uri=root_uri, initialization_options=options
        )
        await client.initialize_async(params)
        client.initialized(types.InitializedParams())
        yield Editor(client, process.pid)
        await client.shutdown_async(None)
        client.exit(None)
    except RuntimeError as error:  # raised by pygls for requests to a server that ends
        if process.returncode is None:
            raise
        raise BenchError(f"the language server has ended by itself: {await said}") from error
    finally:
        if process.stdin is not None:
            process.stdin.close()
        await ended(process, _ENDING_S)
        said.cancel()
        await client.stop()


async def _started(
    client: LanguageClient, command: Sequence[str], environ: Mapping[str, str]
) -> Process:
    try:
        await client.start_io(*command, env=dict(environ))
    except OSError as error:
        raise BenchError(f"{command[0]} cannot be started: {error.strerror}") from error
    process = client._server
    assert process is not None
    return process


async def _said(process: Process) -> str:
    """Return the last line of its errors; a full pipe would stop a server at some point."""
    last = b""
    while process.stderr is not None and (more := await process.stderr.read(1 << 12)):
        last = (last + more)[-(1 << 12) :]
    lines = last.decode("utf-8", "replace").strip().splitlines()
    return lines[-1] if lines else f"status {await process.wait()}"


def utf16_len(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


def behind(text: str, start: types.Position = types.Position(0, 0)) -> types.Position:  # noqa: B008 - nobody changes it
    """Return the position behind `text` written at `start`."""
    *above, last = text.split("\n")
    column = utf16_len(last) + (0 if above else start.character)
    return types.Position(start.line + len(above), column)
