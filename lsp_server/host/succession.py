"""Whether the local host gives way to this version of foregram: an older one does, while it is idle.

A newer version always wins, by the order of versions, and an older one never replaces it: two
editors of different versions do not take turns. Where the protocol is another one the same holds,
as then the newer editor cannot use the host at all; the older editor is told to be restarted.
A version whose host died at its start is unfit, until `foregram stop` or a newer one.
"""

from contextlib import suppress

import httpx2
import msgspec

from engine.host.protocol import PROTOCOL_VERSION, Status
from engine.host.response_body import body_of
from engine.host.runtime import HostRecord
from engine.version import VERSION
from lsp_server.host.address import HostAddress
from lsp_server.host.probe import ProbeResult

IDLE_S = 60.0  # for which nobody has used a host that others have documents in


class Incumbent(msgspec.Struct, frozen=True, rename="camel"):
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

    def gives_way_to(self, successor: str, record: HostRecord | None) -> bool:
        """Whether `successor`, a version, may replace it; `record` is what is known of its start."""
        is_unfit = record is not None and record.unfit == successor
        return is_older(self.version, successor) and self.is_idle and not is_unfit

    def has_failed_before(self, wanted_at: float, record: HostRecord | None) -> bool:
        """Whether it serves nobody, and a person has wanted a host since it was started."""
        return self.state == "failed" and record is not None and record.started_at < wanted_at


def successor_version() -> str:
    """The version that this process can start and talk to.

    That is what it was started as, unless an older one has been installed since.
    """
    installed = installed_version()
    return installed if is_older(installed, VERSION) else VERSION


def installed_version() -> str:
    """What a program that is started now runs."""
    from importlib.metadata import version

    return version("foregram")


def version_sentence(status: Status, *, is_remote: bool) -> str:
    """What a host's version means beside ours; empty where it is the same."""
    ours = successor_version()
    if is_older(status.version, ours):
        what = "update it where it runs" if is_remote else "it gives way once it is idle"
        return f"it is of version {status.version}, and this is {ours}: {what}"
    if is_older(ours, status.version):
        return f"it is of version {status.version}, newer than this one, {ours}"
    return ""


def is_older(one: str, other: str) -> bool:
    """Whether a version precedes another; what is no version precedes none."""
    from packaging.version import InvalidVersion, Version

    with suppress(InvalidVersion):
        return Version(one) < Version(other)
    return False


async def incumbent(
    address: HostAddress, answer: ProbeResult, record: HostRecord | None
) -> Incumbent | None:
    """The host that gave this answer; one of another protocol is asked in its own."""
    if answer.status is not None:
        return msgspec.convert(msgspec.to_builtins(answer.status), Incumbent)
    if answer.code != "wrong_protocol" or record is None:
        return None
    async with address.client(protocol=record.protocol) as http:
        with suppress(httpx2.HTTPError, httpx2.StreamError, msgspec.MsgspecError):
            async with http.stream("GET", "/v1/status") as response:
                return msgspec.json.decode(await body_of(response), type=Incumbent)
    return None
