"""A completer on a real host, with documents that a test edits; no process, no LSP."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lsprotocol import types

from engine.request import Chunk
from lsp_server.completion.completer import InlineCompleter
from lsp_server.documents.documents import Documents
from lsp_server.host.address import HostAddress
from lsp_server.host.link import HostLink
from lsp_server.privacy.permissions import Permissions
from lsp_server.reasons import Reason
from lsp_server.settings import Settings
from lsp_server.workspace import Workspace
from tests.support.editor import behind
from tests.support.held_engine import HeldEngine
from tests.support.running_host import RunningHost, running_host
from tests.support.workspaces import link_of

URI = "file:///shop/a.py"
SOURCE = "def total(items):\n    |\n"
WORDS = ("return ", "sum(", "items", ")")  # an engine's
TEXT = "return sum(items)"
SURE = (Chunk("return items", is_sure=True, unsure="["), Chunk("[0]"))
Answer = list[types.InlineCompletionItem] | Reason


@dataclass
class Connected:
    engine: HeldEngine
    host: RunningHost
    documents: Documents
    link: HostLink
    completer: InlineCompleter
    more: list[tuple[str, int]]  # documents and versions of which more text is there
    version: int = 1
    before: str = ""  # the text up to the cursor

    def open(self, text: str, uri: str = URI, language: str = "python") -> None:
        self.before, _, after = text.partition("|")
        item = types.TextDocumentItem(uri, language, self.version, self.before + after)
        self.documents.open(item)

    def type(self, text: str, uri: str = URI) -> None:
        self.version += 1
        place = behind(self.before)
        change = types.TextDocumentContentChangePartial(types.Range(place, place), text)
        self.documents.change(uri, self.version, [change])
        self.before += text

    def erase(self) -> None:
        """Delete the character before the cursor."""
        self.version += 1
        end, self.before = behind(self.before), self.before[:-1]
        change = types.TextDocumentContentChangePartial(types.Range(behind(self.before), end), "")
        self.documents.change(URI, self.version, [change])

    def ask(self, uri: str = URI, **options: Any) -> asyncio.Task[Answer]:
        kinds = types.InlineCompletionTriggerKind
        kind = kinds.Invoked if options.pop("invoked", False) else kinds.Automatic
        context = types.InlineCompletionContext(kind, options.pop("selected", None))
        position = options.pop("position", behind(self.before))
        params = types.InlineCompletionParams(context, types.TextDocumentIdentifier(uri), position)
        return asyncio.create_task(self.completer.answer(params))

    async def texts(self, **options: Any) -> list[str]:
        return texts_of(await self.ask(**options))

    async def begun(self) -> None:
        """Wait until the engine works on one more completion."""
        await asyncio.to_thread(self.engine.began.acquire)


def texts_of(answer: Answer) -> list[str]:
    return [] if isinstance(answer, Reason) else [str(item.insert_text) for item in answer]


@asynccontextmanager
async def connected(
    folder: Path,
    engine: HeldEngine,
    *,
    load: Callable[[Any], Any] | None = None,
    **settings: Any,
) -> AsyncIterator[Connected]:
    """Connect a completer to a host that serves `engine`, or the engine that `load` returns."""
    settings = {"speculate": False, **settings}
    chosen = Settings(cache_folder=folder, runtime_folder=folder, **settings)
    workspace = Workspace(Documents(), chosen, Permissions([Path("/shop")], chosen))

    async def find() -> HostAddress:
        return HostAddress("", folder / "host.sock")

    async with running_host(folder, engine, load=load) as host:
        link = link_of(workspace, find)
        more = list[tuple[str, int]]()
        completer = InlineCompleter(workspace, link, lambda *told: more.append(told))
        link.search.begin()
        yield Connected(engine, host, workspace.documents, link, completer, more)
        completer.stop_all()
        await link.leave()


@asynccontextmanager
async def editing(folder: Path, engine: HeldEngine, **options: Any) -> AsyncIterator[Connected]:
    """An editor with `SOURCE` open."""
    async with connected(folder, engine, **options) as editor:
        editor.open(SOURCE)
        yield editor
