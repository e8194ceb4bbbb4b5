"""A transport that gathers what is written in one turn of the event loop into one call of the system.

An answer is written in pieces: its head, each chunk with its length, its end. A call of the system
for each lets go of the interpreter's lock, and waits for the engine's thread to give it back.
"""

import asyncio
from typing import Any

_MOST_BYTES = 2**16  # that are held back


class GatheredWrites(asyncio.Transport):
    """What a connection's protocol uses of `transport`."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self._transport, self._loop = transport, loop
        self._gathered = bytearray()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Write at the end of this turn."""
        if not self._gathered:
            self._loop.call_soon(self._flush)
        self._gathered += data
        if len(self._gathered) > _MOST_BYTES:
            self._flush()

    def close(self) -> None:
        """Close once all is written. A second time, TLS would lose its end of the connection."""
        if not self.is_closing():
            self._flush()
            self._transport.close()

    def abort(self) -> None:
        """Close at once; what was not written is lost."""
        self._gathered.clear()
        self._transport.abort()

    def get_write_buffer_size(self) -> int:
        """Bytes that nobody took yet."""
        return len(self._gathered) + self._transport.get_write_buffer_size()

    def is_closing(self) -> bool:
        """Whether it is, or was, closed."""
        return self._transport.is_closing()

    def pause_reading(self) -> None:
        """Receive nothing for now."""
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Receive again."""
        self._transport.resume_reading()

    def get_extra_info(self, name: str, default: Any = None) -> Any:  # noqa: ANN401 - asyncio's
        """What the system says of the connection."""
        return self._transport.get_extra_info(name, default)

    def _flush(self) -> None:
        if self._gathered:
            gathered, self._gathered = self._gathered, bytearray()
            self._transport.write(gathered)
