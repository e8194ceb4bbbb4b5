"""A host of the benchmark's own: `foregram serve` on a socket, ended whatever happens."""

import asyncio
import sys
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from subprocess import STDOUT

from engine.host.principals import METRICS_NAME
from engine.host.runtime import new_secret
from lsp_server.host.address import HostAddress
from lsp_server.host.client import probe
from tests.bench.simulated.editor import BenchError
from tests.bench.simulated.processes import ended

_POLL_S = 0.1
_ENDING_S = 15.0  # seconds; a host drains for ten
_IDLE_EXIT_S = 60  # seconds; ends the host if this process is killed first


@asynccontextmanager
async def own_host(folder: Path, options: Sequence[str], token: str) -> AsyncIterator[HostAddress]:
    """Start a host with its socket and log in `folder`, and wait for its model.

    `options` are those of `foregram serve`; it must accept `token`. Raises BenchError.
    """
    address = HostAddress(token, folder / "host.sock")
    command = [sys.executable, "-m", "lsp_server", "serve", "--socket"]
    command += [str(address.socket_path), "--idle-exit", str(_IDLE_EXIT_S), *options]
    with (folder / "log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdout=log,
            stderr=STDOUT,
            start_new_session=True,  # Ctrl-C goes to this process, which then ends the host
        )
    try:
        await _until_ready(address, process, folder / "log")
        yield address
    finally:
        with suppress(ProcessLookupError):
            process.terminate()
        await ended(process, _ENDING_S)


def write_tokens(path: Path, count: int) -> None:
    """Write a token file with a line for each of `count` people, as a team has it."""
    names = [METRICS_NAME, *(f"person-{number}" for number in range(1, count + 1))]
    path.touch(mode=0o600)
    path.write_text("".join(f"{name}:{new_secret()}\n" for name in names))


async def _until_ready(address: HostAddress, process: Process, log: Path) -> None:
    while True:
        status = (await probe(address)).status
        if status is not None and status.state == "ready":
            return
        if status is not None and status.state == "failed":
            why = status.problem.message if status.problem else ""
            raise BenchError(f"the host cannot load its model: {why}")
        if process.returncode is not None:
            words = log.read_text("utf-8", "replace").strip().splitlines()
            raise BenchError(f"the host has ended by itself: {words[-1] if words else ''}")
        await asyncio.sleep(_POLL_S)
