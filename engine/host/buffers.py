"""The clients of a host, and the buffers that each keeps open."""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from engine.host.failures import RefusalError
from engine.host.held_buffer import HeldBuffer, synced
from engine.host.protocol import UNKNOWN_CLIENT, UNKNOWN_VERSION, BufferSync, Problem
from engine.host.quotas import Quotas


class VersionConflictError(RefusalError):
    """These buffers are not held at the version that a request builds on."""

    def __init__(self, uris: Sequence[str], client: "Client | None") -> None:
        code = UNKNOWN_VERSION if client and client.buffers else UNKNOWN_CLIENT
        reason = f"not held at the version named: {', '.join(uris)}"
        super().__init__(409, Problem(code, reason, tuple(uris)))


class ClientId(NamedTuple):
    """A client's own name, which is its own only among those of its principal."""

    principal: str
    name: str


@dataclass(slots=True)
class Client:
    """What one LSP server has open; the buffer synced last comes last.

    `buffers` is never changed, only replaced, because other threads read it.
    """

    workspace: str = ""
    buffers: dict[str, HeldBuffer] = field(default_factory=dict)
    seen_at: float = field(default_factory=time.monotonic)


class BufferUsage(NamedTuple):
    """What a principal holds."""

    clients: int
    buffers: int
    num_bytes: int


class ClientBuffers:
    """All clients. Belongs to the event loop; what it hands out never changes."""

    def __init__(self, quotas_of: Callable[[str], Quotas] = lambda _: Quotas()) -> None:
        """Let no principal hold more than its quotas."""
        self._clients: dict[ClientId, Client] = {}
        self._quotas_of = quotas_of

    @property
    def clients(self) -> list[ClientId]:
        """Clients that have not left, of all principals."""
        return list(self._clients)

    def num_others(self, client_id: ClientId) -> int:
        """Clients of the same principal that have not left, without this one."""
        own = {one for one in self._clients if one.principal == client_id.principal}
        return len(own - {client_id})

    def usage_of(self, principal: str = "") -> BufferUsage:
        """What the clients of a principal hold together; without a name, those of all."""
        own = [one for name, one in self._clients.items() if not principal or name[0] == principal]
        sizes = [held.num_bytes for one in own for held in one.buffers.values()]
        return BufferUsage(len(own), len(sizes), sum(sizes))

    def sync(self, client_id: ClientId, workspace: str, buffers: Iterable[BufferSync]) -> None:
        """Bring buffers to their new versions. Those in conflict stay, all others are updated.

        Raises VersionConflictError, InputError and, where nothing is taken over, QuotaError.
        """
        known = self._clients.get(client_id) or Client()
        conflicts, all_held = [], dict(known.buffers)
        for sync in buffers:
            held = all_held.get(sync.uri)
            if sync.lines is None and (held is None or held.version != sync.base_version):
                conflicts.append(sync.uri)
                continue
            all_held.pop(sync.uri, None)  # the latest stands last
            all_held[sync.uri] = synced(held, sync)
        self._check(client_id, known, all_held)
        conflict = VersionConflictError(conflicts, known)
        client = self._clients.setdefault(client_id, known)
        client.workspace, client.seen_at, client.buffers = workspace, time.monotonic(), all_held
        if conflicts:
            raise conflict

    def _check(self, client_id: ClientId, known: Client, wanted: dict[str, HeldBuffer]) -> None:
        """Nobody is refused what takes no more than before. Raises QuotaError."""
        is_new = client_id not in self._clients
        grown = _num_bytes(wanted) - _num_bytes(known.buffers)
        added = len(wanted) - len(known.buffers)
        if is_new or grown > 0 or added > 0:
            usage = self.usage_of(client_id.principal)
            self._quotas_of(client_id.principal).check_buffers(
                usage.clients + is_new, usage.buffers + added, usage.num_bytes + grown
            )

    def get(self, client_id: ClientId, uri: str, version: int | None = None) -> HeldBuffer:
        """Return a buffer at a version, or at any. Raises VersionConflictError if it is not held."""
        client = self._clients.get(client_id)
        held = client.buffers.get(uri) if client else None
        if held is None or version not in (None, held.version):
            raise VersionConflictError([uri], client)
        return held

    def holds(self, client_id: ClientId, uri: str) -> bool:
        """Whether a client has a buffer open. Any thread may ask."""
        client = self._clients.get(client_id)
        return client is not None and uri in client.buffers

    def has_open(self, client_id: ClientId) -> bool:
        """Whether a client has any buffer open."""
        client = self._clients.get(client_id)
        return client is not None and bool(client.buffers)

    def others(self, client_id: ClientId, held: HeldBuffer) -> tuple[HeldBuffer, ...]:
        """Return the client's other files, the one synced last first.

        The cells of one notebook are one file.
        """
        buffers = reversed(self._clients[client_id].buffers.values())
        return tuple(one for one in buffers if not _is_same_file(one, held))

    def close(self, client_id: ClientId, uris: Iterable[str] | None) -> Client:
        """Forget the buffers that a client closed, None being all. Returns what was forgotten."""
        client = self._clients.get(client_id) or Client()
        if uris is None:
            self._clients.pop(client_id, None)
            return client
        rest = dict(client.buffers)
        closed = {uri: rest.pop(uri) for uri in uris if uri in rest}
        client.buffers = rest
        return Client(client.workspace, closed)

    def silent(self, for_s: float) -> list[ClientId]:
        """The clients that have been silent for so long."""
        oldest = time.monotonic() - for_s
        return [name for name, client in self._clients.items() if client.seen_at < oldest]

    def touch(self, client_id: ClientId) -> None:
        """Note that a client is alive."""
        if client := self._clients.get(client_id):
            client.seen_at = time.monotonic()


def _num_bytes(buffers: dict[str, HeldBuffer]) -> int:
    return sum(held.num_bytes for held in buffers.values())


def _is_same_file(one: HeldBuffer, other: HeldBuffer) -> bool:
    return one.uri == other.uri or (one.notebook == other.notebook != "")
