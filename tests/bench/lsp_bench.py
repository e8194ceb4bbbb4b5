"""`python -m tests.bench lsp`: the language server, measured from an editor's side."""

import argparse
import asyncio
import json
import os
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
from rich.table import Table

from engine.bench.figures import percentile
from lsp_server.cli import command_parser
from lsp_server.cli.terminal import print_figures
from lsp_server.host.daemon import stop_host
from lsp_server.settings import Settings
from tests.bench.simulated.editor import BenchError, Editor, opened_editor
from tests.bench.simulated.foregram_side import model_variable

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
_TYPED = 24  # keys typed along each completion
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


@dataclass(frozen=True, slots=True)
class Spread:
    p50: float
    p99: float

    @classmethod
    def of(cls, ms: list[float]) -> "Spread":
        return cls(percentile(ms, 50), percentile(ms, 99))


@dataclass(frozen=True, slots=True)
class LspFigures:
    initialize_ms: float
    resident_mb: float
    type_through_ms: Spread
    num_flashes: int  # empty or wrong answers while typing along
    overhead_ms: Spread
    change_ms: Spread
    prefilled_again: int
    prefilled_typed: int
    prefilled_entered: int

    def table(self) -> Table:
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


def add_options(parser: argparse.ArgumentParser) -> None:
    model = {"--model NAME": "the model of the host that is started"}
    command_parser.add_options(parser, model | command_parser.JSON)


def bench(arguments: argparse.Namespace, settings: Settings) -> None:
    """Measure a new server with a new host, or with that of host_url, and print the figures."""
    with TemporaryDirectory() as folder:
        own_host = msgspec.structs.replace(settings, runtime_folder=Path(folder) / "run")
        runtime = (own_host if settings.host_url is None else settings).runtime_folder
        own = {"FOREGRAM_RUNTIME": str(runtime), "FOREGRAM_NUM_CANDIDATES": "1"}
        own |= model_variable(arguments.model)
        command = [sys.executable, "-m", "lsp_server", "lsp", "--stdio"]
        try:
            figures = asyncio.run(measure_lsp(command, {**os.environ, **own}))
        finally:
            if settings.host_url is None:
                asyncio.run(stop_host(own_host))
    print_figures(arguments, asdict(figures), figures.table())


async def measure_lsp(command: list[str], environ: Mapping[str, str]) -> LspFigures:
    """Start a language server and use it as an editor does. Raises BenchError."""
    initialize_ms = median([await _initialize_ms(command, environ) for _ in range(_STARTS)])
    async with opened_editor(command, environ, "file:///bench") as editor:
        resident_mb = await _resident_mb(editor.process_id)
        editor.open(_URI, _SOURCE.replace("{}", ""))
        editor.place(_URI, _ROW, 4)
        await _first_completion(editor)
        return LspFigures(
            initialize_ms,
            resident_mb,
            *await _type_along(editor),
            await _overhead(editor),
            **await _reuse(editor),
            change_ms=await _change_ms(editor),
        )


async def _first_completion(editor: Editor) -> None:
    deadline = time.monotonic() + _READY_S
    while not await editor.complete():
        if time.monotonic() > deadline:
            raise BenchError("there is no completion; `foregram why` shows the reason")
        await asyncio.sleep(0.2)


async def _initialize_ms(command: list[str], environ: Mapping[str, str]) -> float:
    """Return the time from a process's start to its response, without a client library's."""
    began = time.perf_counter()
    process = await asyncio.create_subprocess_exec(
        *command, env=dict(environ), stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdin is not None
    assert process.stdout is not None
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


async def _type_along(editor: Editor) -> tuple[Spread, int]:
    """Type the shown text key by key; each response should be its rest, at once."""
    times: list[float] = []
    num_flashes = 0
    text = await editor.complete()
    while len(times) < _TYPED and text:
        editor.type(text[0])
        expected, began = text[1:], time.perf_counter()
        text = await editor.complete()
        if expected:  # otherwise it was not cached
            times.append(1000 * (time.perf_counter() - began))
            num_flashes += text != expected
    return Spread.of(times), num_flashes


async def _overhead(editor: Editor) -> Spread:
    """Return a request's time beyond the host's own, each for a new text."""
    times: list[float] = []
    last = ""
    for number in range(_REQUESTS):
        # A name that no prefetched completion can contain.
        editor.type(f"\n    {_NAMES[number % len(_NAMES)]}_{number * 37 % 101} = ")
        began = time.perf_counter()
        await editor.complete()
        whole = 1000 * (time.perf_counter() - began)
        cost = await editor.last_cost()
        if cost["id"] != last:  # otherwise it was cached
            times.append(whole - cost["queueMs"] - cost["prefillMs"] - cost["decodeMs"])
        last = cost["id"]
    return Spread.of(times)


async def _reuse(editor: Editor) -> dict[str, Any]:
    """Return the tokens that a request much like the last one prefills again."""

    async def prefilled(typed: str) -> int:
        if typed:
            editor.type(typed)
        await editor.complete(invoked=True)
        cost = await editor.last_cost()
        return int(cost["promptTokens"] - cost["reusedTokens"])

    await prefilled("\n    cheap")
    return {
        "prefilled_again": await prefilled(""),
        "prefilled_typed": await prefilled("e"),
        "prefilled_entered": await prefilled("st = 1\n    "),
    }


async def _change_ms(editor: Editor) -> Spread:
    """Return the time to edit a long file; a command's response marks the end of each edit."""
    editor.open(_LONG_URI, "".join(f"value_{n} = {n}  # é\n" for n in range(_LONG_LINES)))
    await editor.ping()
    times = []
    for number in range(300):
        began = time.perf_counter()
        editor.insert(_LONG_URI, number * 160 % _LONG_LINES, 0, "x")
        await editor.ping()
        times.append(1000 * (time.perf_counter() - began))
    return Spread.of(times)
