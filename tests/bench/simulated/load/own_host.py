"""A host of the benchmark's own: `foregram serve` on a socket, ended whatever happens."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from engine.host.principals import METRICS_NAME
from engine.host.runtime import new_secret
from lsp_server.host.address import HostAddress
from lsp_server.host.client import probe
from tests.support.polling import ServerError
from tests.support.served_host import served_host

_POLL_S = 0.1
_IDLE_EXIT_S = 60  # seconds; ends the host if this process is killed first


@asynccontextmanager
async def own_host(folder: Path, options: Sequence[str], token: str) -> AsyncIterator[HostAddress]:
    """Start a host with its socket and log in `folder`, and wait for its model.

    `options` are those of `foregram serve`; it must accept `token`. Raises ServerError.
    """
    address = HostAddress(token, folder / "host.sock")
    with served_host(folder, "--idle-exit", _IDLE_EXIT_S, *options) as host:
        while (status := (await probe(address)).status) is None or status.state != "ready":
            if status is not None and status.problem is not None:
                raise ServerError(f"the host cannot load its model: {status.problem.message}")
            host.until(lambda: True)  # it still runs
            await asyncio.sleep(_POLL_S)
        yield address


def write_tokens(path: Path, count: int) -> None:
    """Write a token file with a line for each of `count` people, as a team has it."""
    names = [METRICS_NAME, *(f"person-{number}" for number in range(1, count + 1))]
    path.touch(mode=0o600)
    path.write_text("".join(f"{name}:{new_secret()}\n" for name in names))
