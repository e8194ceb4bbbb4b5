"""What a host says of itself, or why it says nothing."""

from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

import httpx2

from engine.host.protocol import Status
from engine.version import VERSION
from lsp_server.host.address import HostAddress, host_address
from lsp_server.host.client import (
    NO_HOST,
    HostAbsentError,
    HostClient,
    HostGoneError,
    HostRefusedError,
)
from lsp_server.settings import Settings

IDLE_S = 60.0  # seconds without a request, for a host that holds documents of editors


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """What came of asking a host for its status.

    `absent`: nothing listens; `silent`: something does and hangs up; `still`: it does not even do
    that; `refused`: it is no host, or none for us. Without a status, `reason` says so in words, and
    `code` is the host's own error code, if it sent one.
    """

    kind: Literal["status", "absent", "silent", "still", "refused"]
    status: Status | None = None
    reason: str = ""
    code: str = ""


async def host_status(settings: Settings, client_id: str = "") -> ProbeResult:
    """Probe the host that the settings name, as the client `client_id`."""
    return await probe(host_address(settings), client_id)


async def probe(address: HostAddress, client_id: str = "") -> ProbeResult:
    """Ask the host at `address` for its status; a failure is a result too."""
    host = HostClient(address.client(), address.endpoint)
    try:
        return ProbeResult("status", await host.status(client_id))
    except HostAbsentError as error:
        return ProbeResult("absent", reason=str(error))
    except HostGoneError as error:
        cause = type(error.__cause__).__name__
        reason = f"the completion host on {address.endpoint} does not answer: {cause}"
        is_late = isinstance(error.__cause__, TimeoutError | httpx2.TimeoutException)
        return ProbeResult("still" if is_late else "silent", reason=reason)
    except HostRefusedError as error:
        reason = f"the completion host on {address.endpoint} refuses: {error}"
        if error.problem.code == NO_HOST:
            reason = f"what listens on {address.endpoint} is not a completion host of this version"
        return ProbeResult("refused", reason=reason, code=error.problem.code)
    finally:
        await host.close()


def is_idle(status: Status) -> bool:
    """Whether nobody misses a host for the moment that another one takes to start."""
    is_busy = status.num_running or status.num_waiting or status.state in ("loading", "stopping")
    return not is_busy and (status.num_clients == 0 or status.idle_s >= IDLE_S)


def precedes(version: str, other: str) -> bool:
    """Whether a version is older than another; what is no version precedes none."""
    from packaging.version import InvalidVersion, Version

    with suppress(InvalidVersion):
        return Version(version) < Version(other)
    return False


def version_sentence(status: Status, *, is_remote: bool) -> str:
    """What a host's version means beside ours; empty where it is the same."""
    if precedes(status.version, VERSION):
        local = "the next editor that starts while it is idle replaces it"
        what = "update it where it runs" if is_remote else local
        return f"it is of version {status.version}, and this is {VERSION}: {what}"
    if precedes(VERSION, status.version):
        return f"it is of version {status.version}, newer than this one, {VERSION}"
    return ""
