"""`python -m tests.bench load`: many simulated people type at once at one host."""

import argparse
import asyncio
import signal
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from itertools import cycle, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Self

import msgspec

from engine.errors import ConfigurationError, InputError
from engine.host.principals import METRICS_NAME
from engine.host.protocol import Status
from engine.host.runtime import new_secret
from engine.model_names import SMALLEST_MODEL
from lsp_server.cli import command_parser
from lsp_server.cli.command_parser import positive
from lsp_server.cli.terminal import print_figures, tracked
from lsp_server.host.address import HostAddress, host_address
from lsp_server.host.client import probe
from lsp_server.settings import Settings
from tests.bench.random_model import write_random_model
from tests.bench.simulated.foregram_side import found_anywhere, share_models
from tests.bench.simulated.load.crowd import Crowd
from tests.bench.simulated.load.load_figures import LoadFigures, load_json, load_table
from tests.bench.simulated.traces import Trace, load_traces, own_traces
from tests.support.polling import ServerError
from tests.support.served_host import served_host

_TERMINATED = 143  # exit status after SIGTERM, as in shells
# Random text never ends, and no draft of it is right: each completion takes as many steps as one of
# a real model. Prompts are limited, as a model without cost would get the longest; several threads
# would cost it more than they gain.
_TINY_TOKENS = 5
_TINY_OPTIONS = ("--prompt-tokens", "1024", "--threads", "1")
_POLL_S = 0.1
_IDLE_EXIT_S = 60  # seconds; ends the host if this process is killed first


@dataclass(frozen=True, slots=True)
class _Doors:
    """Addresses of the host: one for each person in turn, and one that may read its metrics."""

    people: Sequence[HostAddress]
    metrics: HostAddress

    @classmethod
    def of(cls, address: HostAddress, tokens: Sequence[tuple[str, str]]) -> Self:
        """Return them for the names and tokens of a file, or else the address itself for all."""
        people = [token for name, token in tokens if name != METRICS_NAME] or [address.token]
        metrics = next((token for name, token in tokens if name == METRICS_NAME), people[0])
        return cls([replace(address, token=one) for one in people], replace(address, token=metrics))


def add_options(parser: argparse.ArgumentParser) -> None:
    own = parser.add_mutually_exclusive_group()
    tiny = "likewise, with a small model of random numbers: the host itself is measured"
    command_parser.add_options(
        own, {"--local": "start a host, and end it afterwards", "--tiny": tiny}
    )
    options = {
        "[url URL]": "the host; its token as in settings",
        "--model NAME": "the model of the host of --local",
        "--set SET.jsonl": "a replay set to type; functions of foregram's own source by default",
        "--tokens FILE": "a token file of several lines: person i uses the token of line i",
        "--seed SEED =1": "the people's pace; 1 by default",
    }
    command_parser.add_options(parser, options | command_parser.JSON)
    people = "so many at once, one number after the other; 1,2,4,8,16,32,64 by default"
    every = (1, 2, 4, 8, 16, 32, 64)
    parser.add_argument("--people", metavar="N,N", type=_counts, default=every, help=people)
    duration = "each number types for S seconds, once all have come; 60 by default"
    parser.add_argument("--duration", metavar="S", type=_seconds, default=60.0, help=duration)
    active = "each person types for this share of the time, and reads for the rest; 0.25 by default"
    parser.add_argument("--active", metavar="SHARE", type=_share, default=0.25, help=active)


def _counts(text: str) -> tuple[int, ...]:
    return tuple(map(positive, text.split(",")))


def _share(text: str) -> float:
    if not 0 < (share := _seconds(text)) <= 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no share above 0, up to 1")
    return share


def _seconds(text: str) -> float:
    if not text.replace(".", "", 1).isdecimal() or float(text) <= 0:
        raise argparse.ArgumentTypeError(f"{text!r} is no time above 0")
    return float(text)


def bench(arguments: argparse.Namespace, settings: Settings) -> int:
    places = [arguments.url is not None, arguments.local, arguments.tiny]
    if sum(places) != 1:
        raise ConfigurationError("name the host's URL, or else either --local or --tiny")
    changes: dict[str, object] = {"host_url": arguments.url}
    if arguments.tiny:  # a random model is unsure of everything, and never ends
        changes |= {"min_confidence": 0.0, "max_tokens": _TINY_TOKENS}
    settings = msgspec.structs.replace(settings, **changes)
    traces = load_traces(arguments.set) if arguments.set else own_traces()
    try:
        runs, host = asyncio.run(_measured(arguments, settings, traces))
    except asyncio.CancelledError:
        return _TERMINATED
    print_figures(arguments, load_json(runs, host, arguments.seed), load_table(runs, host))
    return 0


async def _measured(
    arguments: argparse.Namespace, settings: Settings, traces: Sequence[Trace]
) -> tuple[Sequence[LoadFigures], Status]:
    """Run one crowd after the other at the same host. SIGTERM cancels it, and ends an own host.

    Raises ServerError if the host serves nobody.
    """
    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    runs, pace = [], (arguments.seed, arguments.active)
    async with _doors(arguments, settings, traces) as doors:
        found = await probe(doors.people[0])
        if found.status is None:
            raise ServerError(found.reason)
        for count in tracked(arguments.people, "numbers of people"):
            people = list(islice(cycle(doors.people), count))
            crowd = Crowd(people, doors.metrics, settings, traces, *pace)
            runs.append(LoadFigures.of(await crowd.type_for(arguments.duration)))
    return runs, found.status


@asynccontextmanager
async def _doors(
    arguments: argparse.Namespace, settings: Settings, traces: Sequence[Trace]
) -> AsyncIterator[_Doors]:
    file, most = arguments.tokens, max(arguments.people)
    if arguments.url is not None:
        tokens = _read_tokens(file, most) if file else ()
        yield _Doors.of(host_address(settings), tokens)
        return
    with TemporaryDirectory(prefix="fg-") as name:
        folder = Path(name)
        if file is None:
            _write_tokens(file := folder / "tokens", most)
        doors = _Doors.of(HostAddress("", folder / "host.sock"), _read_tokens(file, most))
        own_model = _own_model(arguments, settings, traces, folder)
        options = ["--token-file", str(file.absolute()), *own_model]
        async with own_host(folder, options, doors.people[0]):
            yield doors


@asynccontextmanager
async def own_host(
    folder: Path, options: Sequence[str], address: HostAddress
) -> AsyncIterator[None]:
    """Start a host with its socket and log in `folder`, and wait for its model.

    `options` are those of `foregram serve`; `address` has one of its tokens. Raises ServerError.
    """
    with served_host(folder, "--idle-exit", _IDLE_EXIT_S, *options) as host:
        while (status := (await probe(address)).status) is None or status.state != "ready":
            if status is not None and status.problem is not None:
                raise ServerError(f"the host cannot load its model: {status.problem.message}")
            host.until(lambda: True)  # it still runs
            await asyncio.sleep(_POLL_S)
        yield


def _own_model(
    arguments: argparse.Namespace, settings: Settings, traces: Sequence[Trace], folder: Path
) -> list[str]:
    """Return the model options of `foregram serve`; `folder` keeps what it learns."""
    if arguments.tiny:
        model = str(folder / "model")
        write_random_model(Path(model), traces)
        (folder / "cache").mkdir()
    else:
        model = found_anywhere(arguments.model or settings.model or SMALLEST_MODEL)
        share_models(settings.cache_folder, folder / "cache")
    options = ["--model", model, "--cache-folder", str(folder / "cache")]
    return [*options, *_TINY_OPTIONS] if arguments.tiny else options


def _write_tokens(path: Path, count: int) -> None:
    """Write a token file with a line for each of `count` people, as a team has it."""
    names = [METRICS_NAME, *(f"person-{number}" for number in range(1, count + 1))]
    path.touch(mode=0o600)
    path.write_text("".join(f"{name}:{new_secret()}\n" for name in names))


def _read_tokens(path: Path, most: int) -> Sequence[tuple[str, str]]:
    """Read the names and tokens of a host's token file, in their order. Raises InputError.

    `most` people need a token each, or share a single one. People with one token share its quotas
    and its turns, which is another measurement.
    """
    try:
        lines = [line.strip() for line in path.read_text("ascii").splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no ASCII"
        raise InputError(f"{path} cannot be read: {reason}") from error
    lines = [line for line in lines if line and not line.startswith("#")]
    tokens = [line.partition(":")[::2] if ":" in line else ("", line) for line in lines]
    if all(name == METRICS_NAME for name, _ in tokens):
        raise InputError(f"{path} holds no token of a person")
    if any("sha256:" in line for line in lines):
        raise InputError(f"{path} holds hashes: to speak to a host, the tokens are needed")
    count = sum(name != METRICS_NAME for name, _ in tokens)
    if 1 < count < most:
        raise InputError(f"{path} holds the tokens of {count} people, not of {most}")
    return tokens
