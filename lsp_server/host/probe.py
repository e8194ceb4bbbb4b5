"""What a host says of itself, or why it says nothing."""

import ssl
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

import httpx2
import msgspec

from engine.host.protocol import Problem, Status
from lsp_server.host.address import HostAddress, host_address
from lsp_server.host.response_body import body_of
from lsp_server.settings import Settings


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """What came of asking a host for its status.

    `absent`: nothing listens; `silent`: something does and does not answer; `refused`: it is no
    host, or none for us. Without a status, `reason` says so in words, and `code` is the host's own
    error code, if it sent one.
    """

    kind: Literal["status", "absent", "silent", "refused"]
    status: Status | None = None
    reason: str = ""
    code: str = ""


async def host_status(settings: Settings, client_id: str = "") -> ProbeResult:
    """Probe the host that the settings name, as the client `client_id`."""
    return await probe(host_address(settings), client_id)


async def probe(address: HostAddress, client_id: str = "") -> ProbeResult:
    """Ask the host at `address` for its status; a failure is a result too."""
    params = {"client": client_id} if client_id else {}
    try:
        async with (
            address.client() as client,
            client.stream("GET", "/v1/status", params=params) as response,
        ):
            body = await body_of(response)
    except httpx2.ConnectError as error:
        return ProbeResult("absent", reason=why_unreachable(address.endpoint, error))
    except httpx2.HTTPError as error:
        reason = (
            f"the completion host on {address.endpoint} does not answer: {type(error).__name__}"
        )
        return ProbeResult("silent", reason=reason)
    if response.status_code == httpx2.codes.OK:
        with suppress(msgspec.MsgspecError):
            return ProbeResult("status", msgspec.json.decode(body, type=Status))
    return _refusal(address, body)


def why_unreachable(endpoint: str, error: Exception) -> str:
    """Why no connection came about, and what helps; `endpoint` is where the host should listen."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            what = f"the certificate of {endpoint} is not accepted: {cause.verify_message}"
            return what if "expired" in what else f"{what}; ca_file may name the one that signed it"
        cause = cause.__cause__ or cause.__context__
    reason = f"no completion host listens on {endpoint}"
    return f"{reason}: {error}" if endpoint.startswith("https:") else reason


def _refusal(address: HostAddress, body: bytes) -> ProbeResult:
    with suppress(msgspec.MsgspecError):
        problem = msgspec.json.decode(body, type=Problem)
        reason = f"the completion host on {address.endpoint} refuses: {problem.message}"
        return ProbeResult("refused", reason=reason, code=problem.code)
    reason = f"what listens on {address.endpoint} is not a completion host of this version"
    return ProbeResult("refused", reason=reason)
