"""What to send a host of the open documents: what it does not hold, and what it has to forget."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import NamedTuple

from engine.host.protocol import BufferSync
from lsp_server.documents.document import Snapshot
from lsp_server.documents.line_buffer import differences
from lsp_server.workspace import Workspace

_VERSION_BITS = 32
_MOST_OTHER_CHARS = 500_000  # of a document that is not the one completed


class Syncs(NamedTuple):
    """Buffers to send, and the documents as the host holds them once it has taken these."""

    buffers: tuple[BufferSync, ...]
    snapshots: Mapping[str, Snapshot]


class HostSync:
    """Follows what one host holds of the documents.

    It contains what the host may hold; only what that has acknowledged counts as held. If that is
    wrong, the host says so (409), and what it names is sent anew.
    """

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._documents = workspace.documents
        # The documents that the host may hold, each as it has acknowledged it; the one judged
        # longest ago comes first.
        self._sent: dict[str, Snapshot | None] = {}

    def syncs(self, snapshot: Snapshot) -> Syncs:
        """What brings the host to a snapshot, and to the present state of all other documents."""
        sent = [snapshot, *self._others(snapshot.uri)]
        buffers = [sync for one in sent if (sync := self._sync(one)) is not None]
        for one in sent:
            self._sent.setdefault(one.uri, None)
        return Syncs(tuple(buffers), {one.uri: one for one in sent})

    def taken(self, syncs: Syncs) -> None:
        """The host has acknowledged them."""
        self._sent.update(syncs.snapshots)

    def brings(self, syncs: Syncs, uri: str) -> bool:
        """Whether the host holds a document as it is now, once it has taken `syncs`."""
        snapshot = self._documents.snapshot(uri)
        held = syncs.snapshots.get(uri) or self._sent.get(uri)
        return isinstance(snapshot, Snapshot) and _is_same(held, snapshot)

    def is_past(self, snapshot: Snapshot) -> bool:
        """Whether the host holds a newer state of a document, from which no changes lead back."""
        held = self._sent.get(snapshot.uri)
        return held is not None and host_version(held) > host_version(snapshot)

    def __contains__(self, uri: str) -> bool:
        return uri in self._sent

    def __len__(self) -> int:
        return len(self._sent)

    def unwanted(self, most: int | None = None) -> tuple[str, ...]:
        """What the host may hold but must not: closed documents, and those that are hidden now.

        At most `most` are judged, beginning with the one judged longest ago.
        """
        judged = list(islice(self._sent, most))
        for uri in judged:
            self._sent[uri] = self._sent.pop(uri)
        return tuple(uri for uri in judged if not self._is_wanted(uri))

    def closed(self, uris: Iterable[str]) -> None:
        """The host is being asked to close documents."""
        for uri in uris:
            self._sent.pop(uri, None)

    def forget(self, uris: Iterable[str] | None = None) -> None:
        """The host does not hold these, or any, as it should; or it may hold them still."""
        self._sent |= dict.fromkeys(self._sent if uris is None else uris)

    def _is_wanted(self, uri: str) -> bool:
        snapshot = self._documents.snapshot(uri)
        return isinstance(snapshot, Snapshot) and self._workspace.permissions.may_send(snapshot)

    def _others(self, uri: str) -> Iterator[Snapshot]:
        """The other documents that feed drafts and prompts, the large ones left out."""
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
    """Versions begin anew with each opening of a document; the host's do not."""
    return (snapshot.opening << _VERSION_BITS) + snapshot.version


def _is_same(held: Snapshot | None, snapshot: Snapshot) -> bool:
    return held is not None and host_version(held) == host_version(snapshot)
