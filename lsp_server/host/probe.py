"""What a host says of itself, or why it says nothing."""

from dataclasses import dataclass
from typing import Literal

import httpx2

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


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """What came of asking a host for its status.

    `absent`: nothing listens; `silent`: something does and hangs up; `still`: it does not even do
    that; `refused`: it is no host, or none for us. Without a status, `reason` says so in words, and `code` is the host's own
    error code, if it sent one.
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
