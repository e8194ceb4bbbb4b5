"""Open buffers as documents of the pool: a changed one is removed and added again.

A long buffer is several documents. One completion adds a part of much new text, as others wait.
"""

from collections import OrderedDict
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import NamedTuple

from engine.drafting.pool import Document, NgramPool
from engine.drafting.tree import Source
from engine.model.remembered_encoding import Encode
from engine.request import Buffer, ClosedBuffers

MOST_CHARS = 2_000_000  # of all buffers, which leaves the pool room for the edited file
_DOCUMENT_CHARS = 100_000
_NEW_CHARS = 200_000  # that one completion tokenises (40 ms), or a document more; most have less


class _Held(NamedTuple):
    buffer: Buffer
    document: Document


class OpenBuffers:
    """Documents kept equal to the buffers of each workspace's last request."""

    def __init__(
        self, pool: NgramPool, encode: Encode, source: Source = Source.OPEN_BUFFER
    ) -> None:
        self._pool = pool
        self._encode = encode
        self._source = source
        self._held: OrderedDict[str, list[_Held]] = OrderedDict()  # by workspace

    def sync(self, workspace: str, buffers: Sequence[Buffer]) -> bool:
        """Hold as many `buffers` of a workspace, most related first, as there is room for.

        The pool finds its newest document first, so the most related one is added last. Later calls
        add the rest of much new text. Returns whether any buffer was added.
        """
        held = self._held.setdefault(workspace, [])
        self._held.move_to_end(workspace)
        parts = [part for buffer in _fitting(buffers) for part in _parts(buffer)]
        self._make_room(sum(len(part.text) for part in parts))
        wanted = _affordable(parts, {one.buffer.text for one in held})[::-1]
        kept = 0
        while kept < min(len(wanted), len(held)) and held[kept].buffer == wanted[kept]:
            kept += 1
        # Parts that only moved, as when the user switches files, are not encoded again.
        known = {one.buffer.text: self._pool.ids_of(one.document) for one in held[kept:]}
        self._close_from(held, kept)
        for part in wanted[kept:]:
            ids = known.get(part.text)
            document = self._pool.add(
                self._encode(part.text) if ids is None else ids, self._source, part.path
            )
            held.append(_Held(part, document))
        return kept < len(wanted)

    def forget(self, closed: ClosedBuffers) -> None:
        """Drop the closed buffers, and all buffers of clients that have none left open."""
        for workspace in filter(closed.takes_all_of, list(self._held)):
            self._close_from(self._held.pop(workspace), 0)
        held, names = self._held.get(closed.workspace, []), closed.keys | closed.paths
        for one in [one for one in held if _key(one.buffer) in names]:
            self._pool.remove(one.document)
            held.remove(one)

    def _make_room(self, num_chars: int) -> None:
        """Close workspaces, the least recently used first, until the last fits with `num_chars`."""
        while len(self._held) > 1 and self._num_chars_of_others() + num_chars > MOST_CHARS:
            _, oldest = self._held.popitem(last=False)
            self._close_from(oldest, 0)

    def _num_chars_of_others(self) -> int:
        *others, _ = self._held.values()
        return sum(len(one.buffer.text) for held in others for one in held)

    def _close_from(self, held: list[_Held], start: int) -> None:
        while len(held) > start:
            self._pool.remove(held.pop().document)


def _key(buffer: Buffer) -> str:
    return buffer.key or buffer.path


def _fitting(buffers: Sequence[Buffer]) -> list[Buffer]:
    """The first buffer of each key, without those too large for the room left."""
    fitting: dict[str, Buffer] = {}
    room = MOST_CHARS
    for buffer in buffers:
        if _key(buffer) not in fitting and len(buffer.text) <= room:
            fitting[_key(buffer)] = buffer
            room -= len(buffer.text)
    return list(fitting.values())


def _parts(buffer: Buffer) -> list[Buffer]:
    """The buffer cut into documents, at line ends where there are any."""
    text, parts = buffer.text, list[Buffer]()
    while len(text) > _DOCUMENT_CHARS:
        end = text.rfind("\n", 0, _DOCUMENT_CHARS) + 1 or _DOCUMENT_CHARS
        parts.append(replace(buffer, text=text[:end]))
        text = text[end:]
    return [*parts, replace(buffer, text=text)] if parts else [buffer]


def _affordable(parts: Sequence[Buffer], known: Collection[str]) -> list[Buffer]:
    """The known parts, and as many new ones as one completion may tokenise."""
    affordable, room = list[Buffer](), _NEW_CHARS
    for part in parts:
        is_known = part.text in known
        if is_known or room > 0:
            affordable.append(part)
            room -= 0 if is_known else len(part.text)
    return affordable
