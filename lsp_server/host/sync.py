"""What to send a host: buffers that it does not hold, and feedback on its completions."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

from engine.host.protocol import MAX_FEEDBACK, BufferSync, Feedback
from lsp_server.documents.document import Snapshot
from lsp_server.documents.documents import Documents
from lsp_server.documents.line_buffer import difference

_VERSION_BITS = 32
_MOST_OTHER_CHARS = 500_000  # of a document that is not the one completed
_ALONE_S = 0.5  # until feedback is sent alone: a user that types asks again earlier


class Syncs(NamedTuple):
    """Buffers to send, and the documents as the host holds them once it has taken these."""

    buffers: tuple[BufferSync, ...]
    snapshots: Mapping[str, Snapshot]


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
            if snapshot.uri == uri or _is_same(self._sent.get(snapshot.uri), snapshot):
                continue
            if sum(map(len, snapshot.lines)) <= _MOST_OTHER_CHARS and self._may_send(snapshot):
                yield snapshot

    def _sync(self, snapshot: Snapshot) -> BufferSync | None:
        """What brings the host to a snapshot; None if it holds that already."""
        uri, held = snapshot.uri, self._sent.get(snapshot.uri)
        if _is_same(held, snapshot):
            return None
        about = (uri, self._path_of(uri), snapshot.language_id, host_version(snapshot))
        notebook = self._documents.notebook_of(uri)
        if held is None or held.opening != snapshot.opening:
            return BufferSync(*about, lines=snapshot.lines, notebook=notebook)
        changes = (difference(held.lines, snapshot.lines),)
        base = host_version(held)
        return BufferSync(*about, base_version=base, splices=changes, notebook=notebook)


def host_version(snapshot: Snapshot) -> int:
    """Versions begin anew with each opening of a document; the host's do not."""
    return (snapshot.opening << _VERSION_BITS) + snapshot.version


def _is_same(held: Snapshot | None, snapshot: Snapshot) -> bool:
    return held is not None and host_version(held) == host_version(snapshot)


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
