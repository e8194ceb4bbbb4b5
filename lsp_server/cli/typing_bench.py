"""`foregram bench typing`: a simulated person types real insertions beside foregram and others."""

import argparse
import asyncio
import json
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack

from rich.console import Console

from engine.errors import ConfigurationError
from engine.model_names import kind_of, path_of
from lsp_server.bench.foregram_side import foregram_side
from lsp_server.bench.sides import AssistedTrace, Side, take_turns
from lsp_server.bench.traces import load_traces
from lsp_server.bench.typing_report import typing_json, typing_table
from lsp_server.bench.typist import Typist
from lsp_server.cli.terminal import tracked
from lsp_server.settings import Settings


def bench_typing(arguments: argparse.Namespace, settings: Settings) -> None:
    """Have every trace of a set typed beside each side in turn, and print the figures."""
    if settings.host_url is not None:
        raise ConfigurationError("bench typing needs a host of its own: unset FOREGRAM_HOST_URL")
    runs = asyncio.run(_typed(arguments, settings))
    if arguments.json:
        sys.stdout.write(json.dumps(typing_json(runs, arguments.seed)) + "\n")
    else:
        Console().print(typing_table(runs))


async def _typed(
    arguments: argparse.Namespace, settings: Settings
) -> Mapping[str, Sequence[AssistedTrace]]:
    traces = load_traces(arguments.file, arguments.count)
    environ = _environ(arguments)
    async with AsyncExitStack() as stack:
        own = foregram_side("foregram", [sys.executable, "-m", "lsp_server"], settings, environ)
        sides: list[Side] = [await stack.enter_async_context(own)]
        if arguments.against is not None:
            program = [str(arguments.against.absolute())]
            other = foregram_side("against", program, settings, environ)
            sides.append(await stack.enter_async_context(other))
        return await take_turns(sides, tracked(traces, "traces"), Typist(arguments.seed))


def _environ(arguments: argparse.Namespace) -> Mapping[str, str]:
    """What every side's processes get: the user's settings, and the model."""
    if not arguments.model:
        return os.environ
    is_path = kind_of(arguments.model) == "path"  # the servers run in other folders
    path = path_of(arguments.model).absolute() if is_path else arguments.model
    return {**os.environ, "FOREGRAM_MODEL": str(path)}
