"""Whether the local host is replaced, because it is idle and of an older version than this process.

The newer version always wins, so editors of two versions do not take turns. The same holds where
the protocol differs: the newer editor cannot use the host, and later the older one is refused.
A version whose host crashed at its start replaces nothing, until `foregram stop` or another version.
"""

from contextlib import suppress

import httpx2
import msgspec

from engine.host.http_client import body_of
from engine.host.protocol import PROTOCOL_VERSION, Status
from engine.host.runtime import HostRecord
from engine.version import VERSION
from lsp_server.host.address import HostAddress
from lsp_server.host.failures import boot_s
from lsp_server.host.probe import ProbeResult

IDLE_S = 60.0  # seconds without a request, for a host that holds documents of editors


class RunningHost(msgspec.Struct, frozen=True, rename="camel"):
    """What hosts of all protocols say of themselves."""

    version: str
    pid: int
    state: str = ""
    num_running: int = 0
    num_waiting: int = 0
    num_clients: int = 0
    idle_s: float = 0.0
    protocol: int = PROTOCOL_VERSION

    @property
    def is_idle(self) -> bool:
        """Whether nobody misses it for the moment that another one takes to start."""
        is_busy = self.num_running or self.num_waiting or self.state in ("loading", "stopping")
        return not is_busy and (self.num_clients == 0 or self.idle_s >= IDLE_S)

    def is_replaced(self, record: HostRecord | None, wanted_at: float) -> bool:
        """Whether a host of this version takes its place; `record` tells of its start.

        One that could not load its model serves nobody, so it is replaced for a person who wanted a
        host since, at `wanted_at`.
        """
        if record is not None and self.state == "failed" and record.started_at < wanted_at:
            return True
        has_crashed = record is not None and record.crashed == VERSION
        return is_older(self.version, VERSION) and self.is_idle and not has_crashed


def version_sentence(status: Status, *, is_remote: bool) -> str:
    """What a host's version means beside ours; empty where it is the same."""
    if is_older(status.version, VERSION):
        local = "the next editor that starts while it is idle replaces it"
        what = "update it where it runs" if is_remote else local
        return f"it is of version {status.version}, and this is {VERSION}: {what}"
    if is_older(VERSION, status.version):
        return f"it is of version {status.version}, newer than this one, {VERSION}"
    return ""


def is_older(one: str, other: str) -> bool:
    """Whether a version precedes another; what is no version precedes none."""
    from packaging.version import InvalidVersion, Version

    with suppress(InvalidVersion):
        return Version(one) < Version(other)
    return False


def started(pid: int, former: HostRecord | None) -> HostRecord:
    """The record of a host of this version that starts now, after that of `former`, which died."""
    record = HostRecord(pid, boot_s(), version=VERSION)
    if former is None:
        return record
    return msgspec.structs.replace(record, failures=former.failures, crashed=former.crashed)


async def running_host(
    address: HostAddress, answer: ProbeResult, record: HostRecord | None
) -> RunningHost | None:
    """The local host that gave this answer; None if it tells nothing.

    One of another protocol is asked in the one that its record names.
    """
    if answer.status is not None:
        return msgspec.convert(msgspec.to_builtins(answer.status), RunningHost)
    if answer.code != "wrong_protocol":
        return None
    protocol = PROTOCOL_VERSION if record is None else record.protocol
    async with address.client(protocol=protocol) as http:
        with suppress(httpx2.HTTPError, httpx2.StreamError, msgspec.MsgspecError):
            async with http.stream("GET", "/v1/status") as response:
                return msgspec.json.decode(await body_of(response), type=RunningHost)
    return None
