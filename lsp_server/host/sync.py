"""What to send a host: buffers that it does not hold, and feedback on its completions."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

from engine.host.protocol import MAX_FEEDBACK, BufferSync, Feedback, LineSplice
from lsp_server.documents.document import Snapshot
from lsp_server.documents.documents import Documents

_VERSION_BITS = 32
_MOST_OTHER_CHARS = 500_000  # of a document that is not the one completed
_ALONE_S = 0.5  # until feedback is sent alone: a user that types asks again earlier


class Syncs(NamedTuple):
    """Buffers to send, and the versions that the host holds once it has taken them."""

    buffers: tuple[BufferSync, ...]
    versions: Mapping[str, int]


class HostSync:
    """Follows what one host holds of the documents.

    Only what the host has acknowledged counts as held. If that is wrong, it says so (409), and
    what it names is sent anew.
    """

    def __init__(
        self,
        documents: Documents,
        may_send: Callable[[Snapshot], bool],
        path_of: Callable[[str], str],
    ) -> None:
        self._documents = documents
        self._may_send = may_send
        self._path_of = path_of
        # The documents that the host may hold, with the version that it has acknowledged; the one
        # judged longest ago comes first.
        self._sent: dict[str, int | None] = {}

    def syncs(self, snapshot: Snapshot) -> Syncs:
        """What brings the host to a snapshot, and to the present state of all other documents."""
        sent = [snapshot, *self._others(snapshot.uri)]
        buffers = [sync for one in sent if (sync := self._sync(one)) is not None]
        versions = {one.uri: _host_version(one) for one in sent}
        for uri in versions:
            self._sent.setdefault(uri, None)
        return Syncs(tuple(buffers), versions)

    def taken(self, syncs: Syncs) -> None:
        """The host has acknowledged them: it holds these versions."""
        self._sent.update(syncs.versions)

    def brings(self, syncs: Syncs, uri: str) -> bool:
        """Whether the host holds a document as it is now, once it has taken `syncs`."""
        snapshot = self._documents.snapshot(uri)
        held = syncs.versions.get(uri) or self._sent.get(uri)
        return isinstance(snapshot, Snapshot) and held == _host_version(snapshot)

    def is_past(self, snapshot: Snapshot) -> bool:
        """Whether the host holds a newer state of a document, from which no changes lead back."""
        held = self._sent.get(snapshot.uri)
        return held is not None and held > _host_version(snapshot)

    def knows(self, uri: str) -> bool:
        """Whether the host may hold a document."""
        return uri in self._sent

    @property
    def num_sent(self) -> int:
        """How many documents the host may hold."""
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

    def leave(self) -> None:
        """There will be another host."""
        self._sent.clear()

    def _is_wanted(self, uri: str) -> bool:
        snapshot = self._documents.snapshot(uri)
        return isinstance(snapshot, Snapshot) and self._may_send(snapshot)

    def _others(self, uri: str) -> Iterator[Snapshot]:
        """The other documents that feed drafts and prompts, the large ones left out."""
        for snapshot in self._documents.snapshots():
            is_held = self._sent.get(snapshot.uri) == _host_version(snapshot)
            if snapshot.uri == uri or is_held:
                continue
            if sum(map(len, snapshot.lines)) <= _MOST_OTHER_CHARS and self._may_send(snapshot):
                yield snapshot

    def _sync(self, snapshot: Snapshot) -> BufferSync | None:
        """What brings the host to a snapshot; None if it holds that already."""
        uri, held = snapshot.uri, self._sent.get(snapshot.uri)
        version = _host_version(snapshot)
        if held == version:
            return None
        about = (uri, self._path_of(uri), snapshot.language_id, version)
        notebook = self._documents.notebook_of(uri)
        if held is not None and held >> _VERSION_BITS == snapshot.opening:
            splices = self._splices(snapshot, held & ((1 << _VERSION_BITS) - 1))
            if splices is not None:
                return BufferSync(*about, base_version=held, splices=splices, notebook=notebook)
        return BufferSync(*about, lines=snapshot.lines, notebook=notebook)

    def _splices(self, snapshot: Snapshot, base_version: int) -> tuple[LineSplice, ...] | None:
        """What leads from a version to the snapshot, which keys may have left behind meanwhile."""
        now = self._documents.snapshot(snapshot.uri)
        if not isinstance(now, Snapshot) or now.opening != snapshot.opening:
            return None
        return self._documents.splices_since(snapshot.uri, base_version, snapshot.version)


def _host_version(snapshot: Snapshot) -> int:
    """Versions begin anew with each opening of a document; the host's do not."""
    return (snapshot.opening << _VERSION_BITS) + snapshot.version


@dataclass(slots=True)
class FeedbackBatch:
    """What became of completions, two to three reports a key: a request for each would cost more.

    `send` tells the host one by one, and raises nothing.
    """

    send: Callable[[Feedback], Awaitable[None]]
    _waiting: list[Feedback] = field(default_factory=list)
    _timer: asyncio.TimerHandle | None = None
    _sending: set[asyncio.Task[None]] = field(default_factory=set)

    def add(self, feedback: Feedback) -> None:
        """Have it told soon."""
        self._waiting.append(feedback)
        if len(self._waiting) >= MAX_FEEDBACK:
            self._begin()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_ALONE_S, self._begin)

    def take(self) -> tuple[Feedback, ...]:
        """What waits, for a request that takes it along."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        waiting, self._waiting = self._waiting, []
        return tuple(waiting)

    async def flush(self) -> None:
        """Tell what waits now."""
        self._begin()
        await asyncio.gather(*self._sending)

    def _begin(self) -> None:
        if waiting := self.take():
            task = asyncio.create_task(self._send_all(waiting))
            self._sending.add(task)
            task.add_done_callback(self._sending.discard)

    async def _send_all(self, waiting: tuple[Feedback, ...]) -> None:
        for feedback in waiting:
            await self.send(feedback)
