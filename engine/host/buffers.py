"""The buffers that clients keep open, as the host knows them: lines, versions, splices."""

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from engine.errors import InputError
from engine.host.protocol import BufferSync, LineSplice, Position
from engine.request import Buffer


class VersionConflictError(Exception):
    """These buffers are not held at the version that a request builds on."""

    def __init__(self, uris: Sequence[str]) -> None:
        super().__init__(f"not held at the version named: {', '.join(uris)}")
        self.uris = tuple(uris)


@dataclass(frozen=True)
class HeldBuffer:
    """A buffer at one version."""

    uri: str
    path: str
    version: int
    lines: tuple[str, ...]
    notebook: str = ""  # whose cell it is

    @cached_property
    def as_buffer(self) -> Buffer:
        """As the engine takes it; one object for each version, so that it is compared once."""
        return Buffer(self.path, "\n".join(self.lines), key=self.uri)


@dataclass(slots=True)
class Client:
    """What one LSP server has open; the buffer synced last comes last.

    `buffers` is never changed, only replaced, because other threads read it.
    """

    workspace: str = ""
    buffers: dict[str, HeldBuffer] = field(default_factory=dict)
    seen_at: float = field(default_factory=time.monotonic)


class ClientBuffers:
    """All clients. Belongs to the event loop; what it hands out never changes."""

    def __init__(self) -> None:
        self._clients: dict[str, Client] = {}

    @property
    def num_clients(self) -> int:
        """Clients that have not left."""
        return len(self._clients)

    def num_others(self, client_id: str) -> int:
        """Clients that have not left, without this one."""
        return len(self._clients.keys() - {client_id})

    @property
    def num_buffers(self) -> int:
        """Buffers of all clients."""
        return sum(len(client.buffers) for client in self._clients.values())

    def sync(self, client_id: str, workspace: str, buffers: Iterable[BufferSync]) -> None:
        """Bring buffers to their new versions. Those in conflict stay, all others are updated.

        Raises VersionConflictError and InputError.
        """
        client = self._clients.setdefault(client_id, Client())
        client.workspace, client.seen_at = workspace, time.monotonic()
        conflicts, all_held = [], dict(client.buffers)
        for sync in buffers:
            held = all_held.get(sync.uri)
            if sync.lines is None and (held is None or held.version != sync.base_version):
                conflicts.append(sync.uri)
                continue
            lines = sync.lines if sync.lines is not None else spliced(held.lines, sync.splices)  # type: ignore[union-attr] # held, as there is no conflict
            all_held.pop(sync.uri, None)  # the latest stands last
            all_held[sync.uri] = HeldBuffer(sync.uri, sync.path, sync.version, lines, sync.notebook)
        client.buffers = all_held
        if conflicts:
            raise VersionConflictError(conflicts)

    def get(self, client_id: str, uri: str, version: int | None = None) -> HeldBuffer:
        """Return a buffer at a version, or at any. Raises VersionConflictError if it is not held."""
        client = self._clients.get(client_id)
        held = client.buffers.get(uri) if client else None
        if held is None or version not in (None, held.version):
            raise VersionConflictError([uri])
        return held

    def holds(self, client_id: str, uri: str) -> bool:
        """Whether a client has a buffer open. Any thread may ask."""
        client = self._clients.get(client_id)
        return client is not None and uri in client.buffers

    def has_open(self, client_id: str) -> bool:
        """Whether a client has any buffer open."""
        client = self._clients.get(client_id)
        return client is not None and bool(client.buffers)

    def others(self, client_id: str, held: HeldBuffer) -> tuple[HeldBuffer, ...]:
        """Return the client's other files, the one synced last first.

        The cells of one notebook are one file.
        """
        buffers = reversed(self._clients[client_id].buffers.values())
        return tuple(one for one in buffers if not _is_same_file(one, held))

    def close(self, client_id: str, uris: Iterable[str] | None) -> Client:
        """Forget the buffers that a client closed, None being all. Returns what was forgotten."""
        client = self._clients.get(client_id) or Client()
        if uris is None:
            self._clients.pop(client_id, None)
            return client
        rest = dict(client.buffers)
        closed = {uri: rest.pop(uri) for uri in uris if uri in rest}
        client.buffers = rest
        return Client(client.workspace, closed)

    def silent(self, for_s: float) -> list[str]:
        """The clients that have been silent for so long."""
        oldest = time.monotonic() - for_s
        return [name for name, client in self._clients.items() if client.seen_at < oldest]

    def touch(self, client_id: str) -> None:
        """Note that a client is alive."""
        if client := self._clients.get(client_id):
            client.seen_at = time.monotonic()


def _is_same_file(one: HeldBuffer, other: HeldBuffer) -> bool:
    return one.uri == other.uri or (one.notebook == other.notebook != "")


def spliced(lines: tuple[str, ...], splices: Iterable[LineSplice]) -> tuple[str, ...]:
    """Apply splices in their order. Raises InputError."""
    changed = list(lines)
    for splice in splices:
        if not 0 <= splice.start <= splice.end <= len(changed):
            raise InputError(
                f"lines {splice.start} to {splice.end} are no range of {len(changed)} lines"
            )
        changed[splice.start : splice.end] = splice.lines
    return tuple(changed)


def split_at(lines: Sequence[str], position: Position) -> tuple[str, str]:
    """Return the text before and behind a position. Raises InputError."""
    if not 0 <= position.line < len(lines):
        raise InputError(f"there is no line {position.line} in {len(lines)} lines")
    line = lines[position.line]
    if not 0 <= position.character <= len(line):
        raise InputError(f"line {position.line} has no character {position.character}")
    before = [*lines[: position.line], line[: position.character]]
    behind = [line[position.character :], *lines[position.line + 1 :]]
    return "\n".join(before), "\n".join(behind)
