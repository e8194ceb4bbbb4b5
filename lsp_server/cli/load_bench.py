"""`foregram bench load`: many people type at once before one host, simulated in this process."""

import argparse
import asyncio
import signal
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Self

import msgspec

from engine.bench.plots import Picture
from engine.bench.random_model import write_random_model
from engine.errors import ConfigurationError, InputError
from engine.host.principals import METRICS_NAME
from engine.host.protocol import Status
from engine.model_names import DEFAULT_MODEL, kind_of, path_of
from lsp_server.bench.editor import BenchError
from lsp_server.bench.load.crowd import Crowd
from lsp_server.bench.load.load_figures import LoadFigures
from lsp_server.bench.load.load_plot import draw_load
from lsp_server.bench.load.load_report import load_json, load_table
from lsp_server.bench.load.own_host import own_host, share_models, write_tokens
from lsp_server.bench.load.own_traces import own_traces
from lsp_server.bench.traces import Trace, load_traces
from lsp_server.cli.terminal import print_figures, tracked
from lsp_server.host.address import HostAddress, host_address
from lsp_server.host.probe import probe
from lsp_server.settings import Settings

_TERMINATED = 143  # as shells report a program that SIGTERM ended
# Random text goes on for ever, and no draft of it is right: so many tokens take as many steps as a
# completion of a real model. A model that costs nothing would be given the longest prompt; several
# threads would cost it more than they gain.
_TINY_TOKENS = 5
_TINY_OPTIONS = ("--prompt-tokens", "1024", "--threads", "1")


@dataclass(frozen=True, slots=True)
class _Doors:
    """The host as one person after the other speaks to it, and as who may read its metrics does."""

    people: Sequence[HostAddress]
    metrics: HostAddress

    @classmethod
    def of(cls, address: HostAddress, tokens: Sequence[tuple[str, str]]) -> Self:
        """With the names and tokens of a file; with none, that of the address is everybody's."""
        people = [token for name, token in tokens if name != METRICS_NAME] or [address.token]
        metrics = next((token for name, token in tokens if name == METRICS_NAME), people[0])
        return cls([replace(address, token=one) for one in people], replace(address, token=metrics))


def bench_load(arguments: argparse.Namespace, settings: Settings) -> int:
    """Have ever more people type before a host, and print the figures of each number of them."""
    places = [arguments.url is not None, arguments.local, arguments.tiny]
    if sum(places) != 1:
        raise ConfigurationError("name the host's URL, or else either --local or --tiny")
    picture = Picture(arguments.plot) if arguments.plot else None
    changes: dict[str, object] = {"host_url": arguments.url, "calibrate": False}
    if arguments.tiny:  # a random model is sure of nothing, and does not end
        changes |= {"min_confidence": 0.0, "max_tokens": _TINY_TOKENS}
    settings = msgspec.structs.replace(settings, **changes)
    traces = load_traces(arguments.set) if arguments.set else own_traces()
    try:
        runs, host = asyncio.run(_measured(arguments, settings, traces))
    except asyncio.CancelledError:
        return _TERMINATED
    print_figures(arguments, load_json(runs, host, arguments.seed), load_table(runs, host))
    if picture:
        picture.save(partial(draw_load, runs))
    return 0


async def _measured(
    arguments: argparse.Namespace, settings: Settings, traces: Sequence[Trace]
) -> tuple[Sequence[LoadFigures], Status]:
    """One crowd after the other, before the same host. SIGTERM cancels it, and ends an own host."""
    task = asyncio.current_task()
    assert task is not None  # noqa: S101 - this is one
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    runs, pace = [], (arguments.seed, arguments.active)
    async with _doors(arguments, settings, traces) as doors:
        host = await _status(doors.people[0])
        for count in tracked(arguments.people, "numbers of people"):
            people = list(islice(cycle(doors.people), count))
            crowd = Crowd(people, doors.metrics, settings, traces, *pace)
            runs.append(LoadFigures.of(await crowd.type_for(arguments.duration)))
    return runs, host


@asynccontextmanager
async def _doors(
    arguments: argparse.Namespace, settings: Settings, traces: Sequence[Trace]
) -> AsyncIterator[_Doors]:
    """Those of the host at a URL, or of one of our own."""
    file, most = arguments.tokens, max(arguments.people)
    if arguments.url is not None:
        tokens = _read_tokens(file, most) if file else ()
        yield _Doors.of(host_address(settings), tokens)
        return
    with TemporaryDirectory(prefix="fg-") as name:
        folder = Path(name)
        if file is None:
            write_tokens(file := folder / "tokens", most)
        tokens = _read_tokens(file, most)
        own_model = _own_model(arguments, settings, traces, folder)
        options = ["--token-file", str(file.absolute()), *own_model]
        person = next(token for name, token in tokens if name != METRICS_NAME)
        async with own_host(folder, options, person) as address:
            yield _Doors.of(address, tokens)


def _own_model(
    arguments: argparse.Namespace, settings: Settings, traces: Sequence[Trace], folder: Path
) -> list[str]:
    """What `foregram serve` is to load. What it learns of the traces goes with `folder`."""
    if arguments.tiny:
        model = str(folder / "model")
        write_random_model(Path(model), _texts(traces))
        (folder / "cache").mkdir()
    else:
        model = arguments.model or settings.model or DEFAULT_MODEL
        model = str(path_of(model).absolute()) if kind_of(model) == "path" else model
        share_models(settings.cache_folder, folder / "cache")
    options = ["--model", model, "--cache-folder", str(folder / "cache")]
    return [*options, *_TINY_OPTIONS] if arguments.tiny else options


def _texts(traces: Sequence[Trace]) -> Iterator[str]:
    for trace in traces:
        yield trace.before + trace.approach + trace.target + trace.suffix
        yield from (buffer.text for buffer in trace.open_buffers)


async def _status(address: HostAddress) -> Status:
    """What the host says of itself. Raises BenchError where it serves nobody."""
    found = await probe(address)
    if found.status is None:
        raise BenchError(found.reason)
    return found.status


def _read_tokens(path: Path, most: int) -> Sequence[tuple[str, str]]:
    """The names and tokens of a host's token file, in their order. Raises InputError.

    `most` people need one each, or share a single one: those who share a token share its quotas and
    its turns, which is another measurement.
    """
    try:
        lines = [line.strip() for line in path.read_text("ascii").splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no ASCII"
        raise InputError(f"{path} cannot be read: {reason}") from error
    tokens = [_token(line) for line in lines if line and not line.startswith("#")]
    if all(name == METRICS_NAME for name, _ in tokens):
        raise InputError(f"{path} holds no token of a person")
    if any(token.startswith("sha256:") for _, token in tokens):
        raise InputError(f"{path} holds hashes: to speak to a host, the tokens are needed")
    count = sum(name != METRICS_NAME for name, _ in tokens)
    if 1 < count < most:
        raise InputError(f"{path} holds the tokens of {count} people, not of {most}")
    return tokens


def _token(line: str) -> tuple[str, str]:
    """A line is a token, or a name, a colon and a token."""
    name, colon, token = line.partition(":")
    return (name, token) if colon else ("", line)
