"""The clients of a host and their open buffers: lines at one version, changed by splices."""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from engine.errors import InputError
from engine.host.failures import RefusalError
from engine.host.protocol import (
    UNKNOWN_CLIENT,
    UNKNOWN_VERSION,
    BufferSync,
    LineSplice,
    Position,
    Problem,
)
from engine.host.quotas import Quotas
from engine.request import Buffer

_PLACE_BYTES = 8  # of a reference in a tuple
_MOST_BEFORE, _MOST_BEHIND = 1 << 15, 1 << 14  # lines used before and behind the cursor
_CUT_LINES = 1 << 12  # lines that a cut moves at once: a multiple of 16 keeps anchors in place


@dataclass(frozen=True)
class HeldBuffer:
    """A buffer at one version."""

    uri: str
    path: str
    version: int
    lines: tuple[str, ...]
    notebook: str = ""  # the notebook, if this is a cell
    text_bytes: int = 0  # memory of the lines

    @property
    def num_bytes(self) -> int:
        """Memory of all strings in the buffer."""
        return self.text_bytes + sum(map(str.__sizeof__, (self.uri, self.path, self.notebook)))

    @cached_property
    def as_buffer(self) -> Buffer:
        """The engine's form; one object per version, so that it is compared only once."""
        return Buffer(self.path, "\n".join(self.lines), key=self.uri)


def synced(held: HeldBuffer | None, sync: BufferSync) -> HeldBuffer:
    """Return a buffer's new version: sent whole, or `held` with splices. Raises InputError."""
    lines, num_bytes = sync.lines, -1
    if lines is None and held is not None:
        lines = spliced(held.lines, sync.splices)
        if len(sync.splices) == 1:  # the usual keystroke: measure only the changed lines
            (splice,) = sync.splices
            removed = held.lines[splice.start : splice.end]
            num_bytes = held.text_bytes - _text_bytes(removed) + _text_bytes(splice.lines)
    lines = lines or ()
    if num_bytes < 0:
        num_bytes = _text_bytes(lines)
    return HeldBuffer(sync.uri, sync.path, sync.version, lines, sync.notebook, num_bytes)


def _text_bytes(lines: Sequence[str]) -> int:
    return sum(map(str.__sizeof__, lines)) + _PLACE_BYTES * len(lines)


def spliced(lines: tuple[str, ...], splices: Iterable[LineSplice]) -> tuple[str, ...]:
    """Apply splices in order. Raises InputError."""
    splices = tuple(splices)
    if not splices:
        return lines
    changed = list(lines)
    for splice in splices:
        if not 0 <= splice.start <= splice.end <= len(changed):
            raise InputError(
                f"lines {splice.start} to {splice.end} are no range of {len(changed)} lines"
            )
        changed[splice.start : splice.end] = splice.lines
    return tuple(changed)


def split_at(
    lines: Sequence[str], position: Position, *, is_whole: bool = False
) -> tuple[str, str]:
    """Return the text before and behind a position, nearby or whole. Raises InputError."""
    if not 0 <= position.line < len(lines):
        raise InputError(f"there is no line {position.line} in {len(lines)} lines")
    line = lines[position.line]
    if not 0 <= position.character <= len(line):
        raise InputError(f"line {position.line} has no character {position.character}")
    far = 0 if is_whole else _far(position.line - _MOST_BEFORE)
    cut = 0 if is_whole else _far(len(lines) - position.line - 1 - _MOST_BEHIND)
    before = [*lines[far : position.line], line[: position.character]]
    behind = [line[position.character :], *lines[position.line + 1 : len(lines) - cut]]
    return "\n".join(before), "\n".join(behind)


def _far(num_lines: int) -> int:
    return max(0, num_lines) // _CUT_LINES * _CUT_LINES


class ClientId(NamedTuple):
    """A client's name, unique only within its principal."""

    principal: str
    name: str


@dataclass(slots=True)
class Client:
    """The open buffers of one LSP server, the last synced last."""

    workspace: str = ""
    buffers: dict[str, HeldBuffer] = field(default_factory=dict)  # only replaced: threads read it
    seen_at: float = field(default_factory=time.monotonic)


class BufferUsage(NamedTuple):
    """The number and size of a principal's clients and buffers."""

    clients: int
    buffers: int
    num_bytes: int


@dataclass(slots=True, eq=False)
class ClientBuffers:
    """All clients' buffers. For the event loop's thread; the buffers it returns are immutable."""

    quotas_of: Callable[[str], Quotas] = lambda _: Quotas()
    clients: dict[ClientId, Client] = field(default_factory=dict)

    def usage_of(self, principal: str = "") -> BufferUsage:
        """Return what one principal's clients hold in all; without a name, all clients."""
        own = [one for name, one in self.clients.items() if not principal or name[0] == principal]
        sizes = [held.num_bytes for one in own for held in one.buffers.values()]
        return BufferUsage(len(own), len(sizes), sum(sizes))

    def sync(self, client_id: ClientId, workspace: str, buffers: Iterable[BufferSync]) -> None:
        """Update all buffers but those in conflict, which RefusalError then names.

        Raises InputError and QuotaError before any update.
        """
        known = self.clients.get(client_id) or Client()
        conflicts, all_held = [], dict(known.buffers)
        for sync in buffers:
            held = all_held.get(sync.uri)
            if sync.lines is None and (held is None or held.version != sync.base_version):
                conflicts.append(sync.uri)
                continue
            all_held.pop(sync.uri, None)  # so that the latest goes last
            all_held[sync.uri] = synced(held, sync)
        self._check(client_id, known, all_held)
        conflict = _conflict(conflicts, known)
        client = self.clients.setdefault(client_id, known)
        client.workspace, client.seen_at, client.buffers = workspace, time.monotonic(), all_held
        if conflicts:
            raise conflict

    def _check(self, client_id: ClientId, known: Client, wanted: dict[str, HeldBuffer]) -> None:
        is_new = client_id not in self.clients
        grown = _num_bytes(wanted) - _num_bytes(known.buffers)
        added = len(wanted) - len(known.buffers)
        if is_new or grown > 0 or added > 0:
            usage = self.usage_of(client_id.principal)
            self.quotas_of(client_id.principal).check_buffers(
                usage.clients + is_new, usage.buffers + added, usage.num_bytes + grown
            )

    def get(self, client_id: ClientId, uri: str, version: int | None = None) -> HeldBuffer:
        """Return a buffer at a version, or at any version. Raises RefusalError."""
        client = self.clients.get(client_id)
        held = client.buffers.get(uri) if client else None
        if held is None or version not in (None, held.version):
            raise _conflict([uri], client)
        return held

    def holds(self, client_id: ClientId, uri: str) -> bool:
        """Whether a client has a buffer open. Thread-safe."""
        client = self.clients.get(client_id)
        return client is not None and uri in client.buffers

    def others(self, client_id: ClientId, held: HeldBuffer) -> tuple[HeldBuffer, ...]:
        """Return the client's other files, last synced first. A notebook's cells are one file."""
        buffers = reversed(self.clients[client_id].buffers.values())
        return tuple(one for one in buffers if not _is_same_file(one, held))

    def close(self, client_id: ClientId, uris: Iterable[str] | None) -> Client:
        """Forget a client's closed buffers, or with None the client. Returns the forgotten ones."""
        client = self.clients.get(client_id) or Client()
        if uris is None:
            self.clients.pop(client_id, None)
            return client
        rest = dict(client.buffers)
        closed = {uri: rest.pop(uri) for uri in uris if uri in rest}
        client.buffers = rest
        return Client(client.workspace, closed)


def _conflict(uris: Sequence[str], client: Client | None) -> RefusalError:
    code = UNKNOWN_VERSION if client and client.buffers else UNKNOWN_CLIENT
    reason = f"not held at the version named: {', '.join(uris)}"
    return RefusalError(409, Problem(code, reason, tuple(uris)))


def _num_bytes(buffers: dict[str, HeldBuffer]) -> int:
    return sum(held.num_bytes for held in buffers.values())


def _is_same_file(one: HeldBuffer, other: HeldBuffer) -> bool:
    return one.uri == other.uri or (one.notebook == other.notebook != "")
