"""`python -m tests.bench typing`: a simulated person types beside foregram and others."""

import argparse
import asyncio
import os
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path

from engine.errors import ConfigurationError
from engine.model_names import SMALLEST_MODEL
from lsp_server.cli import command_parser
from lsp_server.cli.terminal import ProgressBars, print_figures, tracked
from lsp_server.settings import Settings
from tests.bench.llama_cpp import gguf_file
from tests.bench.simulated.foregram_side import foregram_side, model_variable
from tests.bench.simulated.llama_side import PLUGINS, LlamaSide, llama_side
from tests.bench.simulated.sides import AssistedTrace, Side, take_turns
from tests.bench.simulated.traces import Trace, load_traces
from tests.bench.simulated.typing_figures import typing_json, typing_table
from tests.bench.simulated.typist import Typist

# A folder in which `python -m lsp_server`, which it may start, does not mean this checkout.
_SLOWED = str(Path(__file__).with_name("slowed.py"))
_ELSEWHERE = ("sh", "-c", 'cd / && exec "$0" "$@"')


def add_options(parser: argparse.ArgumentParser) -> None:
    options = {
        "file SET.jsonl": "a replay set",
        "--count N": "only the first N insertions",
        "--model NAME": "the model of the hosts that are started",
        "--against PATH": "another foregram, as of an older checkout, beside which the same is typed "
        "in turn",
        "--sides MODEL:FACTOR ...": "instead of `foregram`: each with its model, whose steps take FACTOR "
        "times as long",
        "--seed SEED =1": "the person's pace; 1 by default",
        "--typos P =0": "the share of letters and digits that are typed wrong and then deleted",
        "--rest SECONDS =20": "the most that the person rests before the first key, while foregram reads "
        "the text; 20 by default",
        "--closes": "the editor beside foregram closes brackets and quotes",
        "--llama-server PATH": "the llama.cpp to compare with; the llama-server that a shell finds "
        "by default",
    }
    command_parser.add_options(parser, options | command_parser.JSON)
    peer = "also type beside llama.cpp's server on the same weights, asked as its plugins ask"
    parser.add_argument("--compare", choices=("llama-cpp",), help=peer)


def bench(arguments: argparse.Namespace, settings: Settings) -> None:
    if settings.host_url is not None:
        raise ConfigurationError("bench typing needs a host of its own: unset FOREGRAM_HOST_URL")
    if arguments.compare:
        arguments.model = arguments.model or settings.model or SMALLEST_MODEL
    traces = load_traces(arguments.file, arguments.count)
    with ExitStack() as stack:
        peers = _llama_cpp(arguments, stack) if arguments.compare else []
        runs = asyncio.run(_typed(arguments, settings, traces, peers))
    print_figures(arguments, typing_json(runs, arguments.seed), typing_table(runs))


async def _typed(
    arguments: argparse.Namespace,
    settings: Settings,
    traces: Sequence[Trace],
    peers: Sequence[Side],
) -> Mapping[str, Sequence[AssistedTrace]]:
    async with AsyncExitStack() as stack:
        sides: list[Side] = [
            await stack.enter_async_context(
                foregram_side(
                    name,
                    program,
                    settings,
                    environ,
                    closes=arguments.closes,
                    rest_s=arguments.rest,
                )
            )
            for name, program, environ in _programs(arguments)
        ]
        typist = Typist(arguments.seed, typos=arguments.typos)
        return await take_turns([*sides, *peers], tracked(traces, "traces"), typist)


def _programs(
    arguments: argparse.Namespace,
) -> Iterator[tuple[str, Sequence[str], Mapping[str, str]]]:
    """Yield name, program and environment of each foregram."""
    environ = {**os.environ, **model_variable(arguments.model)}
    for side in arguments.sides:
        model, _, factor = side.rpartition(":")
        yield side, [sys.executable, "-P", _SLOWED, factor], {**environ, **model_variable(model)}
    if not arguments.sides:
        yield "foregram", [sys.executable, "-m", "lsp_server"], environ
    if arguments.against is not None:
        yield "against", [*_ELSEWHERE, str(arguments.against.absolute())], environ


def _llama_cpp(arguments: argparse.Namespace, stack: ExitStack) -> list[LlamaSide]:
    program = arguments.llama_server or shutil.which("llama-server")
    if program is None:
        raise ConfigurationError("there is no llama-server: name one with --llama-server")
    file = stack.enter_context(gguf_file(arguments.model, ProgressBars()))
    return [stack.enter_context(llama_side(Path(program), file, name)) for name in PLUGINS]
