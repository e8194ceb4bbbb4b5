"""Gets the status of a host, or the reason why it sends none."""

from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

import httpx2

from engine import VERSION
from engine.host.protocol import Status
from lsp_server.host.address import HostAddress, host_address
from lsp_server.host.client import (
    NO_HOST,
    HostAbsentError,
    HostClient,
    HostGoneError,
    HostRefusedError,
)
from lsp_server.settings import Settings

IDLE_S = 60.0  # seconds without a request after which a host with clients is idle


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """The result of asking a host for its status.

    `absent`: nothing listens; `silent`: a listener hangs up; `still`: a listener does not react;
    `refused`: it is no host, or none for us. Without a status, `reason` is a sentence for people
    and `code` the host's error code, if it sent one.
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
    """Whether the host may be replaced without disturbing its clients."""
    is_busy = status.num_running or status.num_waiting or status.state in ("loading", "stopping")
    return not is_busy and (status.num_clients == 0 or status.idle_s >= IDLE_S)


def precedes(version: str, other: str) -> bool:
    """Whether a version is older than another; False if either is not a valid version."""
    from packaging.version import InvalidVersion, Version

    with suppress(InvalidVersion):
        return Version(version) < Version(other)
    return False


def version_sentence(status: Status, *, is_remote: bool) -> str:
    """Say how the host's version differs from ours; empty if it does not."""
    if precedes(status.version, VERSION):
        local = "the next editor that starts while it is idle replaces it"
        what = "update it where it runs" if is_remote else local
        return f"it is of version {status.version}, and this is {VERSION}: {what}"
    if precedes(VERSION, status.version):
        return f"it is of version {status.version}, newer than this one, {VERSION}"
    return ""
