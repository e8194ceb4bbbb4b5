"""Open buffers as documents of the pool, long ones as several; a changed one is added again."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import NamedTuple

from engine.drafting.pool import NgramPool, PoolDocument
from engine.drafting.tree import Source
from engine.model.remembered_encoding import Encode
from engine.request import Buffer

MOST_CHARS = 2_000_000  # of all buffers, which leaves the pool room for the edited file
_DOCUMENT_CHARS = 100_000  # takes 20 ms to tokenise, as `_NEW_CHARS` take 40
_NEW_CHARS = 200_000  # that one completion tokenises (40 ms), or a document more; most have less


class _Held(NamedTuple):
    buffer: Buffer
    document: PoolDocument


class OpenBuffers:
    """Documents kept equal to the buffers of the last request."""

    def __init__(
        self, pool: NgramPool, encode: Encode, source: Source = Source.OPEN_BUFFER
    ) -> None:
        self._pool = pool
        self._encode = encode
        self._source = source
        self._held: list[_Held] = []  # most related last: the pool finds its newest document first

    def sync(self, buffers: Sequence[Buffer]) -> bool:
        """Hold the `buffers` that fit, most related first; return whether any was added."""
        held = self._held
        parts = [part for buffer in _fitting(buffers) for part in _parts(buffer)]
        wanted = _affordable(parts, {one.buffer.text for one in held})[::-1]
        kept = 0
        while kept < min(len(wanted), len(held)) and held[kept].buffer == wanted[kept]:
            kept += 1
        # Parts that only moved, as when the user switches files, are not encoded again.
        known = {one.buffer.text: self._pool.ids_of(one.document) for one in held[kept:]}
        self.close(kept)
        for part in wanted[kept:]:
            ids = known.get(part.text)
            document = self._pool.add(
                self._encode(part.text) if ids is None else ids, self._source, part.path
            )
            held.append(_Held(part, document))
        return kept < len(wanted)

    def forget(self, names: Collection[str]) -> None:
        """Drop buffers by their keys or paths."""
        for one in [one for one in self._held if _key(one.buffer) in names]:
            self._pool.remove(one.document)
            self._held.remove(one)

    def close(self, start: int = 0) -> None:
        """Drop the documents from `start` on."""
        while len(self._held) > start:
            self._pool.remove(self._held.pop().document)


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
    """The known parts, and as many new ones as one completion may tokenise; later ones add more."""
    affordable, room = list[Buffer](), _NEW_CHARS
    for part in parts:
        is_known = part.text in known
        if is_known or room > 0:
            affordable.append(part)
            room -= 0 if is_known else len(part.text)
    return affordable
