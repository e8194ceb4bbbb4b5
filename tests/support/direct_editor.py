"""An editor whose messages a server in this process handles at once, in a test's own order."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from lsprotocol import types

from lsp_server.documents.line_buffer import LineBuffer
from lsp_server.transport.protocol import DocumentServer
from tests.support.editor import utf16_len

ABLE = {
    "workspace": {"applyEdit": True, "workspaceEdit": {"documentChanges": True}},
    "window": {"workDoneProgress": True},
}


@dataclass(eq=False)
class Page:
    """A document as the editor holds it; each opening is another life of it."""

    uri: str
    life: int = 0
    version: int = 0
    is_open: bool = False
    buffer: LineBuffer = field(default_factory=lambda: LineBuffer(""))
    former: list[str] = field(default_factory=list)  # texts to undo to, oldest first
    num_changes: int = 0  # since it was opened
    first_lines: tuple[str, ...] | None = None  # of this life, once the server knows them

    @property
    def lines(self) -> tuple[str, ...]:
        return self.buffer.lines

    @property
    def state(self) -> tuple[int, int]:
        """Its life and version: an edit is for one of them."""
        return self.life, self.version

    def range_of(self, first: int, end: int) -> dict[str, Any]:
        """Return whole lines in the protocol's units; up to the text's end if there are no more."""
        last = len(self.lines) - 1
        below = (end, 0) if end <= last else (last, utf16_len(self.lines[last]))
        return {"start": _place(first, 0), "end": _place(*below)}


@dataclass(eq=False)
class Request:
    """A request of the editor, or of the server, about a page."""

    id: Any
    page: Page
    state: tuple[int, int]  # of the page as it was sent
    content: Any
    method: str = ""


@dataclass(eq=False)
class Offer:
    """An edit that the editor was sent, and may apply to the state of a page that it is for."""

    page: Page
    state: tuple[int, int]
    change: dict[str, Any]
    command: Any = None  # of a next edit

    @property
    def fits(self) -> bool:
        return self.page.is_open and self.page.state == self.state


class DirectEditor:
    """Sends at once; what the server sends is kept until the test acts on it."""

    def __init__(self, server: DocumentServer) -> None:
        self.pages: dict[str, Page] = {}
        self.unanswered: dict[Any, Request] = {}
        self.answered: list[tuple[Request, dict[str, Any]]] = []  # with the response
        self.to_apply: list[Request] = []  # edits by the server
        self.num_to_apply = 0  # so far
        self.tokens: list[Any] = []  # of progress that runs
        self.said: list[str] = []  # to the user
        self.logged: list[str] = []
        self._replies: list[dict[str, Any]] = []
        self._numbers = count(1)
        self._server = server
        server.protocol.set_writer(self, include_headers=False)

    async def start(self, **options: Any) -> None:
        params = {"capabilities": ABLE, "processId": None, "initializationOptions": options}
        self.request("initialize", Page(""), params)
        await self.passes(lambda: bool(self.answered))
        self.answered.clear()
        self.notify("initialized", {})

    async def passes(self, condition: Callable[[], bool]) -> None:
        """Let the server work until the condition holds."""
        for _ in range(1_000):
            if condition():
                return
            await asyncio.sleep(0)
        raise AssertionError("the server waits for nothing, and is not done")

    def notify(self, method: str, params: Any) -> None:
        self._handle({"method": method, "params": params})

    def request(self, method: str, page: Page, params: Any) -> Request:
        sent = Request(f"r{next(self._numbers)}", page, page.state, params, method)
        self.unanswered[sent.id] = sent
        self._handle({"id": sent.id, "method": method, "params": params})
        return sent

    def run(self, command: str, page: Page, *arguments: Any) -> Request:
        params = {"command": command, "arguments": list(arguments)}
        return self.request(types.WORKSPACE_EXECUTE_COMMAND, page, params)

    def reply(self) -> None:
        """Send the replies to requests that need no thought."""
        replies, self._replies = self._replies, []
        for one in replies:
            self._handle(one)

    def open_page(self, page: Page, text: str, version: int) -> None:
        self.pages[page.uri] = page
        page.life, page.version, page.is_open = page.life + 1, version, True
        page.buffer = LineBuffer(text)
        page.former, page.num_changes, page.first_lines = [], 0, None
        item = {"uri": page.uri, "languageId": "python", "version": version, "text": text}
        self.notify(types.TEXT_DOCUMENT_DID_OPEN, {"textDocument": item})

    def close_page(self, page: Page) -> None:
        page.is_open = False
        self.notify(types.TEXT_DOCUMENT_DID_CLOSE, {"textDocument": {"uri": page.uri}})

    def change(self, page: Page, *changes: dict[str, Any], growth: int = 1) -> None:
        """Change a page by `range` and `text` each, or its whole text without a range."""
        page.former.append(page.buffer.text)
        page.version += growth
        page.num_changes += 1
        for one in changes:
            page.buffer.apply(_range(one.get("range")), one["text"])
        document = {"uri": page.uri, "version": page.version}
        params = {"textDocument": document, "contentChanges": list(changes)}
        self.notify(types.TEXT_DOCUMENT_DID_CHANGE, params)

    def undo(self, page: Page) -> None:
        text = page.former.pop()
        self.change(page, {"text": text})
        page.former.pop()

    def applied(self, edit: Request, failure: str = "") -> None:
        """Answer the server's request to apply an edit."""
        self._handle({"id": edit.id, "result": {"applied": not failure, "failureReason": failure}})

    def write(self, data: bytes) -> None:
        """Take a message of the server."""
        message = json.loads(data)
        if "method" not in message:
            self.answered.append((self.unanswered.pop(message["id"]), message))
        elif "id" not in message:
            self._take_note(message["method"], message["params"])
        elif message["method"] == types.WORKSPACE_APPLY_EDIT:
            content = message["params"]
            [change] = content["edit"]["documentChanges"]
            page = self.pages[change["textDocument"]["uri"]]
            self.to_apply.append(Request(message["id"], page, page.state, change))
            self.num_to_apply += 1
        else:
            self._replies.append({"id": message["id"], "result": None})

    def close(self) -> None:
        """There is no stream to close."""

    def _take_note(self, method: str, params: Any) -> None:
        if method == types.WINDOW_SHOW_MESSAGE:
            self.said.append(params["message"])
        elif method == types.WINDOW_LOG_MESSAGE:
            self.logged.append(params["message"])
        elif method == types.PROGRESS:
            kind = params["value"]["kind"]
            if kind == "begin":
                self.tokens.append(params["token"])
            elif kind == "end" and params["token"] in self.tokens:
                self.tokens.remove(params["token"])

    def _handle(self, message: dict[str, Any]) -> None:
        self._server.protocol.handle_data({"jsonrpc": "2.0", **message})


def _place(line: int, character: int) -> dict[str, int]:
    return {"line": line, "character": character}


def _range(plain: dict[str, Any] | None) -> types.Range | None:
    if plain is None:
        return None
    return types.Range(types.Position(**plain["start"]), types.Position(**plain["end"]))
