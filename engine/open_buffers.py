"""The open buffers as documents of the pool: what changed between two requests is replaced."""

from collections.abc import Callable, Sequence

from engine.decoding.pool import DocumentId, NgramPool
from engine.decoding.tree import Source
from engine.request import Buffer


class OpenBuffers:
    """Keeps the pool's open documents equal to the buffers of the last request."""

    def __init__(self, pool: NgramPool, encode: Callable[[str], Sequence[int]]) -> None:
        self._pool = pool
        self._encode = encode
        self._held: list[tuple[Buffer, DocumentId]] = []

    def sync(self, buffers: Sequence[Buffer]) -> None:
        """Hold exactly `buffers`, most related first; the pool meets its newest document first."""
        wanted = list(reversed(buffers))
        kept = 0
        while kept < min(len(wanted), len(self._held)) and self._held[kept][0] == wanted[kept]:
            kept += 1
        for _, document in self._held[kept:]:
            self._pool.remove(document)
        del self._held[kept:]
        for buffer in wanted[kept:]:
            ids = self._encode(buffer.text)
            document = self._pool.add(ids, Source.OPEN_BUFFER, buffer.path)
            self._held.append((buffer, document))
