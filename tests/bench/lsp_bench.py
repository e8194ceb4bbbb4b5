"""`python -m tests.bench lsp`: the language server, measured from an editor's side."""

import argparse
import asyncio
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
from lsprotocol import types
from rich.table import Table

from lsp_server.cli import command_parser
from lsp_server.cli.terminal import print_figures
from lsp_server.host.daemon import stop_host
from lsp_server.settings import Settings
from tests.bench.simulated.foregram_side import model_variable
from tests.bench.simulated.load.load_figures import Waits
from tests.support.editor import SERVER, Editor, editor
from tests.support.polling import ServerError
from tests.support.raw_messages import framed
from tests.support.sources import HEAD, SHOP

_LONG_URI = "file:///shop/long.py"
_STARTS = 5
_READY_S = 120.0
_LONG_LINES = 50_000
_REQUESTS = 24
_NAMES = ("weight", "label", "cheapest", "discount", "owner", "shelf", "margin", "supplier")
_TYPED = 24  # keys typed along each completion


@dataclass(frozen=True, slots=True)
class LspFigures:
    initialize_ms: float
    resident_mb: float
    type_through_ms: Waits
    num_flashes: int  # empty or wrong answers while typing along
    overhead_ms: Waits
    change_ms: Waits
    prefilled_again: int
    prefilled_typed: int
    prefilled_entered: int

    def table(self) -> Table:
        table = Table("figure", "p50", "p90", "p99")
        table.add_row("initialize, ms", f"{self.initialize_ms:.0f}")
        table.add_row("resident memory, MB", f"{self.resident_mb:.0f}")
        for name, waits in (
            ("typing along, ms", self.type_through_ms),
            ("overhead of a request over the host, ms", self.overhead_ms),
            (f"an edit of {_LONG_LINES:,} lines and an empty answer, ms", self.change_ms),
        ):
            table.add_row(name, *(f"{one:.2f}" for one in (waits.p50, waits.p90, waits.p99)))
        table.add_row("empty or wrong answers while typing along", f"{self.num_flashes}")
        table.add_row("tokens read: the same again", f"{self.prefilled_again}")
        table.add_row("tokens read: after a character", f"{self.prefilled_typed}")
        table.add_row("tokens read: after Enter", f"{self.prefilled_entered}")
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
        try:
            figures = asyncio.run(measure_lsp(own))
        finally:
            if settings.host_url is None:
                asyncio.run(stop_host(own_host))
    print_figures(arguments, asdict(figures), figures.table())


async def measure_lsp(environ: Mapping[str, str]) -> LspFigures:
    """Start a language server and use it as an editor does. Raises ServerError."""
    initialize_ms = median([await _initialize_ms(environ) for _ in range(_STARTS)])
    async with editor(environ=environ) as shown:
        resident_mb = await _resident_mb(shown.process_id)
        shown.open(f"{SHOP}{HEAD}\n    |\n")
        await _first_completion(shown)
        return LspFigures(
            initialize_ms,
            resident_mb,
            *await _type_along(shown),
            await _overhead(shown),
            **await _reuse(shown),
            change_ms=await _change_ms(shown),
        )


async def _text(shown: Editor, *, invoked: bool = False) -> str:
    items = await shown.items(invoked=invoked)
    return str(items[0].insert_text) if items else ""


async def _first_completion(shown: Editor) -> None:
    deadline = time.monotonic() + _READY_S
    while not await shown.items():
        if time.monotonic() > deadline:
            raise ServerError("there is no completion; `foregram why` shows the reason")
        await asyncio.sleep(0.2)


async def _initialize_ms(environ: Mapping[str, str]) -> float:
    """Return the time from a process's start to its response, without a client library's."""
    began = time.perf_counter()
    process = await asyncio.create_subprocess_exec(
        *SERVER,
        env={**os.environ, **environ},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(framed(id=1, method="initialize", params={"capabilities": {}}))
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


async def _type_along(shown: Editor) -> tuple[Waits, int]:
    """Type the shown text key by key; each response should be its rest, at once."""
    times: list[float] = []
    num_flashes = 0
    text = await _text(shown)
    while len(times) < _TYPED and text:
        shown.type(text[0])
        expected, began = text[1:], time.perf_counter()
        text = await _text(shown)
        if expected:  # otherwise it was not cached
            times.append(time.perf_counter() - began)
            num_flashes += text != expected
    return Waits.of(times), num_flashes


async def _overhead(shown: Editor) -> Waits:
    """Return a request's time beyond the host's own, each for a new text."""
    times: list[float] = []
    last = ""
    for number in range(_REQUESTS):
        # A name that no prefetched completion can contain.
        shown.type(f"\n    {_NAMES[number % len(_NAMES)]}_{number * 37 % 101} = ")
        began = time.perf_counter()
        await shown.items()
        whole_s = time.perf_counter() - began
        cost = await shown.run("foregram.cost")
        if cost["id"] != last:  # otherwise it was cached
            host_ms = cost["queueMs"] + cost["prefillMs"] + cost["decodeMs"]
            times.append(whole_s - host_ms / 1000)
        last = cost["id"]
    return Waits.of(times)


async def _reuse(shown: Editor) -> dict[str, Any]:
    """Return the tokens that a request much like the last one prefills again."""

    async def prefilled(typed: str) -> int:
        if typed:
            shown.type(typed)
        await shown.items(invoked=True)
        cost = await shown.run("foregram.cost")
        return int(cost["promptTokens"] - cost["reusedTokens"])

    await prefilled("\n    cheap")
    return {
        "prefilled_again": await prefilled(""),
        "prefilled_typed": await prefilled("e"),
        "prefilled_entered": await prefilled("st = 1\n    "),
    }


async def _change_ms(shown: Editor) -> Waits:
    """Return the time to edit a long file; a command's response marks the end of each edit."""
    shown.uri = _LONG_URI
    shown.open("".join(f"value_{n} = {n}  # é\n" for n in range(_LONG_LINES)))
    await shown.reasons()
    times = []
    for number in range(300):
        began = time.perf_counter()
        place = types.Position(number * 160 % _LONG_LINES, 0)
        shown.replace(place, place, "x")
        await shown.reasons()
        times.append(time.perf_counter() - began)
    return Waits.of(times)
