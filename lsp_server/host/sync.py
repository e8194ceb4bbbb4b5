"""Decides which open documents a host needs and which ones it has to forget."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import NamedTuple

from engine.host.protocol import BufferSync
from lsp_server.documents.document import Snapshot
from lsp_server.documents.line_buffer import differences
from lsp_server.workspace import Workspace

_VERSION_BITS = 32  # room for an editor's version, which LSP keeps below 2**31
_MOST_OTHER_CHARS = 500_000  # characters; larger documents are sent only to be completed


class Syncs(NamedTuple):
    """Buffers to send, and the documents as the host holds them once it has taken these."""

    buffers: tuple[BufferSync, ...]
    snapshots: Mapping[str, Snapshot]


class HostSync:
    """Tracks which documents one host may hold; only acknowledged ones count as held.

    If that is wrong, the host answers 409, and the documents that it names are sent again.
    """

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._documents = workspace.documents
        # Acknowledged state, if any, of each document it may hold; the least recently judged first.
        self._sent: dict[str, Snapshot | None] = {}

    def syncs(self, snapshot: Snapshot) -> Syncs:
        """Return the updates that bring the host to `snapshot` and the other current documents."""
        sent = [snapshot, *self._others(snapshot.uri)]
        buffers = [sync for one in sent if (sync := self._sync(one)) is not None]
        for one in sent:
            self._sent.setdefault(one.uri, None)
        return Syncs(tuple(buffers), {one.uri: one for one in sent})

    def taken(self, syncs: Syncs) -> None:
        """Note that the host has acknowledged them."""
        self._sent.update(syncs.snapshots)

    def brings(self, syncs: Syncs, uri: str) -> bool:
        """Whether the host has the current state of a document after `syncs`."""
        snapshot = self._documents.snapshot(uri)
        held = syncs.snapshots.get(uri) or self._sent.get(uri)
        return isinstance(snapshot, Snapshot) and _is_same(held, snapshot)

    def is_past(self, snapshot: Snapshot) -> bool:
        """Whether the host holds a newer state, from which no changes lead back."""
        held = self._sent.get(snapshot.uri)
        return held is not None and host_version(held) > host_version(snapshot)

    def __contains__(self, uri: str) -> bool:
        return uri in self._sent

    def __len__(self) -> int:
        return len(self._sent)

    def unwanted(self, most: int | None = None) -> tuple[str, ...]:
        """Judge the `most` least recently judged documents; return those closed or hidden."""
        judged = list(islice(self._sent, most))
        for uri in judged:
            self._sent[uri] = self._sent.pop(uri)
        return tuple(uri for uri in judged if not self._is_wanted(uri))

    def closed(self, uris: Iterable[str]) -> None:
        """Note that the host is being asked to close documents."""
        for uri in uris:
            self._sent.pop(uri, None)

    def forget(self, uris: Iterable[str] | None = None) -> None:
        """Treat these documents, or all, as ones that the host may hold in an unknown state."""
        self._sent |= dict.fromkeys(self._sent if uris is None else uris)

    def _is_wanted(self, uri: str) -> bool:
        snapshot = self._documents.snapshot(uri)
        return isinstance(snapshot, Snapshot) and self._workspace.permissions.may_send(snapshot)

    def _others(self, uri: str) -> Iterator[Snapshot]:
        """Yield other changed documents that feed drafts and prompts, without large ones."""
        for snapshot in self._documents.snapshots():
            if snapshot.uri == uri or _is_same(self._sent.get(snapshot.uri), snapshot):
                continue
            is_large = sum(map(len, snapshot.lines)) > _MOST_OTHER_CHARS
            if not is_large and self._workspace.permissions.may_send(snapshot):
                yield snapshot

    def _sync(self, snapshot: Snapshot) -> BufferSync | None:
        uri, held = snapshot.uri, self._sent.get(snapshot.uri)
        if _is_same(held, snapshot):
            return None
        path = self._workspace.permissions.path_of(uri)
        about = (uri, path, snapshot.language_id, host_version(snapshot))
        notebook = self._documents.notebook_of(uri)
        if held is None or held.opening != snapshot.opening:
            return BufferSync(*about, lines=snapshot.lines, notebook=notebook)
        base, changes = host_version(held), differences(held.lines, snapshot.lines)
        return BufferSync(*about, base_version=base, splices=changes, notebook=notebook)


def host_version(snapshot: Snapshot) -> int:
    """Return a version that grows across openings; an editor's begins anew with each."""
    return (snapshot.opening << _VERSION_BITS) + snapshot.version


def _is_same(held: Snapshot | None, snapshot: Snapshot) -> bool:
    return held is not None and host_version(held) == host_version(snapshot)
