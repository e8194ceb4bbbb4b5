"""`foregram bench lsp`: the language server as an editor sees it, measured from outside."""

import argparse
import asyncio
import json
import os
import sys
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median, quantiles
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
from lsprotocol import types
from pygls.lsp.client import LanguageClient
from rich.console import Console
from rich.table import Table

from engine.errors import ForegramError
from engine.model_names import kind_of, path_of
from lsp_server.host.daemon import stop_host
from lsp_server.settings import Settings

_URI = "file:///bench/inventory.py"
_LONG_URI = "file:///bench/long.py"
_INITIALIZE = json.dumps(
    {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"capabilities": {}}}
).encode()
_STARTS = 5
_READY_S = 120.0
_LONG_LINES = 50_000
_REQUESTS = 24
_NAMES = ("weight", "label", "cheapest", "discount", "owner", "shelf", "margin", "supplier")
_TYPED = 24  # keys typed along a completion
_SOURCE = '''"""A shop's inventory."""

from dataclasses import dataclass


@dataclass
class Item:
    name: str
    price_cents: int
    count: int = 0


def total_price(items: list[Item]) -> int:
    """The price of all items."""
    return sum(item.price_cents * item.count for item in items)


def most_expensive(items: list[Item]) -> Item:
    """The item with the highest price."""
    {}


def total_count(items: list[Item]) -> int:
    """How many pieces there are."""
    return sum(item.count for item in items)
'''
_ROW = _SOURCE.split("\n").index("    {}")


class BenchError(ForegramError):
    """The language server did not do what the benchmark needs."""

    code = "bench_failed"


@dataclass(frozen=True, slots=True)
class Spread:
    """Milliseconds of many repetitions."""

    p50: float
    p99: float

    @classmethod
    def of(cls, ms: list[float]) -> "Spread":
        """Summarize measurements."""
        cuts = quantiles(ms, n=100, method="inclusive")
        return cls(cuts[49], cuts[98])


@dataclass(slots=True)
class LspFigures:
    """All that is measured."""

    initialize_ms: float = 0.0
    resident_mb: float = 0.0
    type_through_ms: Spread = field(default_factory=lambda: Spread(0.0, 0.0))
    num_flashes: int = 0  # empty or wrong answers while typing along
    overhead_ms: Spread = field(default_factory=lambda: Spread(0.0, 0.0))
    change_ms: Spread = field(default_factory=lambda: Spread(0.0, 0.0))
    prefilled_again: int = 0
    prefilled_typed: int = 0
    prefilled_entered: int = 0

    def table(self) -> Table:
        """The figures for people."""
        table = Table("figure", "p50", "p99")
        table.add_row("initialize, ms", f"{self.initialize_ms:.0f}", "")
        table.add_row("resident memory, MB", f"{self.resident_mb:.0f}", "")
        for name, spread in (
            ("typing along, ms", self.type_through_ms),
            ("overhead of a request over the host, ms", self.overhead_ms),
            (f"an edit of {_LONG_LINES:,} lines and an empty answer, ms", self.change_ms),
        ):
            table.add_row(name, f"{spread.p50:.2f}", f"{spread.p99:.2f}")
        table.add_row("empty or wrong answers while typing along", f"{self.num_flashes}", "")
        table.add_row("tokens read: the same again", f"{self.prefilled_again}", "")
        table.add_row("tokens read: after a character", f"{self.prefilled_typed}", "")
        table.add_row("tokens read: after Enter", f"{self.prefilled_entered}", "")
        return table


def bench_lsp(arguments: argparse.Namespace, settings: Settings) -> None:
    """Measure a new server with a new host, or that of host_url, and print the figures."""
    with TemporaryDirectory() as folder:
        own_host = msgspec.structs.replace(settings, runtime_folder=Path(folder) / "run")
        runtime = (own_host if settings.host_url is None else settings).runtime_folder
        own = {"FOREGRAM_RUNTIME": str(runtime), "FOREGRAM_NUM_CANDIDATES": "1"}
        if arguments.model:
            is_path = kind_of(arguments.model) == "path"  # the server runs in another folder
            path = path_of(arguments.model).absolute() if is_path else arguments.model
            own["FOREGRAM_MODEL"] = str(path)
        command = [sys.executable, "-m", "lsp_server", "lsp", "--stdio"]
        try:
            figures = asyncio.run(measure_lsp(command, {**os.environ, **own}))
        finally:
            if settings.host_url is None:
                asyncio.run(stop_host(own_host))
    if arguments.json:
        sys.stdout.write(json.dumps(asdict(figures)) + "\n")
    else:
        Console().print(figures.table())


async def measure_lsp(command: list[str], environ: Mapping[str, str]) -> LspFigures:
    """Start a language server and use it as an editor does. Raises BenchError."""
    figures = LspFigures()
    figures.initialize_ms = median([await _initialize_ms(command, environ) for _ in range(_STARTS)])
    async with _editor(command, environ) as editor:
        figures.resident_mb = await _resident_mb(editor.process_id)
        await editor.open(_URI, _SOURCE.replace("{}", ""))
        await editor.first_completion()
        await _type_along(editor, figures)
        await _overhead(editor, figures)
        await _reuse(editor, figures)
        await _long_file(editor, figures)
    return figures


class Editor:
    """A client with one cursor."""

    def __init__(self, client: LanguageClient, process_id: int) -> None:
        self.process_id = process_id
        self._client = client
        self._version = 1
        self.row, self.column = _ROW, 4

    async def open(self, uri: str, text: str) -> None:
        """Open a document."""
        document = types.TextDocumentItem(uri, "python", 1, text)
        self._client.text_document_did_open(types.DidOpenTextDocumentParams(document))

    def type(self, text: str) -> None:
        """Insert text at the cursor."""
        self.insert(_URI, self.row, self.column, text)
        lines = text.split("\n")
        self.row += len(lines) - 1
        self.column = len(lines[-1]) + (self.column if len(lines) == 1 else 0)

    def insert(self, uri: str, row: int, column: int, text: str) -> None:
        """Insert text in a document."""
        self._version += 1
        position = types.Position(row, column)
        where = types.Range(position, position)
        change = types.TextDocumentContentChangePartial(where, text)
        document = types.VersionedTextDocumentIdentifier(self._version, uri)
        self._client.text_document_did_change(types.DidChangeTextDocumentParams(document, [change]))

    async def complete(self, *, invoked: bool = False) -> str | None:
        """The text of the first item."""
        kind = types.InlineCompletionTriggerKind
        params = types.InlineCompletionParams(
            types.InlineCompletionContext(kind.Invoked if invoked else kind.Automatic),
            types.TextDocumentIdentifier(_URI),
            types.Position(self.row, self.column),
        )
        answer = await self._client.text_document_inline_completion_async(params)
        items = answer.items if isinstance(answer, types.InlineCompletionList) else answer or []
        return str(items[0].insert_text) if items else None

    async def last_cost(self) -> dict[str, Any]:
        """What the host reported of its last completion."""
        params = types.ExecuteCommandParams("foregram.cost")
        return dict(await self._client.workspace_execute_command_async(params) or {})

    async def ping(self) -> None:
        """Wait until the server has handled all messages so far."""
        params = types.ExecuteCommandParams("foregram.why")
        await self._client.workspace_execute_command_async(params)

    async def first_completion(self) -> str:
        """Wait until the model is loaded and completes something."""
        deadline = time.monotonic() + _READY_S
        while time.monotonic() < deadline:
            if text := await self.complete():
                return text
            await asyncio.sleep(0.2)
        raise BenchError("there is no completion; `foregram why` shows the reason")


@asynccontextmanager
async def _editor(command: list[str], environ: Mapping[str, str]) -> AsyncIterator[Editor]:
    client = LanguageClient("foregram-bench", "1")
    await client.start_io(*command, env=dict(environ))
    try:
        params = types.InitializeParams(types.ClientCapabilities(), root_uri="file:///bench")
        await client.initialize_async(params)
        client.initialized(types.InitializedParams())
        process = client._server  # noqa: SLF001 - pygls does not tell the process's id
        yield Editor(client, process.pid if process else 0)
        await client.shutdown_async(None)
        client.exit(None)
    finally:
        await client.stop()  # type: ignore[no-untyped-call] # pygls has no types there


async def _initialize_ms(command: list[str], environ: Mapping[str, str]) -> float:
    """From the start of a process to its response; without a client library's own time."""
    began = time.perf_counter()
    process = await asyncio.create_subprocess_exec(
        *command, env=dict(environ), stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdin is not None  # noqa: S101 - it was asked for
    assert process.stdout is not None  # noqa: S101
    process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(_INITIALIZE), _INITIALIZE))
    await process.stdout.readline()
    taken_ms = 1000 * (time.perf_counter() - began)
    process.stdin.close()
    await process.stdout.read()
    await process.wait()
    return taken_ms


async def _resident_mb(process_id: int) -> float:
    with suppress(OSError):
        for line in Path(f"/proc/{process_id}/status").read_text().splitlines():
            if line.startswith("VmRSS"):
                return int(line.split()[1]) / 1000
    process = await asyncio.create_subprocess_exec(
        "ps", "-o", "rss=", "-p", str(process_id), stdout=asyncio.subprocess.PIPE
    )
    out, _ = await process.communicate()
    return int(out or b"0") / 1000


async def _type_along(editor: Editor, figures: LspFigures) -> None:
    """Type what is shown, key by key; each response should be the rest, at once."""
    times: list[float] = []
    text = await editor.complete()
    while len(times) < _TYPED and text:
        editor.type(text[0])
        expected, began = text[1:], time.perf_counter()
        text = await editor.complete()
        times.append(1000 * (time.perf_counter() - began))
        if expected and text != expected:
            figures.num_flashes += 1
        if not expected:
            times.pop()  # this one was not cached
    figures.type_through_ms = Spread.of(times)


async def _overhead(editor: Editor, figures: LspFigures) -> None:
    """What a request takes beyond the host's own time, for a new text each."""
    times: list[float] = []
    last = ""
    for number in range(_REQUESTS):
        # A name that no prefetched completion could contain.
        editor.type(f"\n    {_NAMES[number % len(_NAMES)]}_{number * 37 % 101} = ")
        began = time.perf_counter()
        await editor.complete()
        whole = 1000 * (time.perf_counter() - began)
        cost = await editor.last_cost()
        if cost["id"] != last:  # else it was cached
            times.append(whole - sum(cost["timings"].values()))
        last = cost["id"]
    figures.overhead_ms = Spread.of(times)


async def _reuse(editor: Editor, figures: LspFigures) -> None:
    """Tokens that are prefilled again for a request like the last one."""

    async def prefilled() -> int:
        await editor.complete(invoked=True)
        cost = await editor.last_cost()
        return int(cost["promptTokens"] - cost["reusedTokens"])

    editor.type("\n    cheap")
    await prefilled()
    figures.prefilled_again = await prefilled()
    editor.type("e")
    figures.prefilled_typed = await prefilled()
    editor.type("st = 1\n    ")
    figures.prefilled_entered = await prefilled()


async def _long_file(editor: Editor, figures: LspFigures) -> None:
    """Edits of a long file; the response to a command says when one is done."""
    await editor.open(_LONG_URI, "".join(f"value_{n} = {n}  # é\n" for n in range(_LONG_LINES)))
    await editor.ping()
    times = []
    for number in range(300):
        began = time.perf_counter()
        editor.insert(_LONG_URI, number * 160 % _LONG_LINES, 0, "x")
        await editor.ping()
        times.append(1000 * (time.perf_counter() - began))
    figures.change_ms = Spread.of(times)
