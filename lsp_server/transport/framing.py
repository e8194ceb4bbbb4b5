"""LSP messages from a stream that anybody may write to: nothing but LSP, and within bounds."""

import asyncio
import os
import re
import threading
from contextlib import suppress

HEADER_BYTES = 1_024  # of one line
_PIECE_BYTES = 2**16  # that are read from a pipe at once
# A header line as far as it has come: at the first byte of something else, nobody waits for its end.
_LINE = re.compile(rb"(?:[a-z][\w-]*[ \t]*(?::[^\r\n]*)?)?\r?\n?", re.IGNORECASE)
_LENGTH = re.compile(rb"[0-9]{1,12}")
_OTHER_CHARSET = re.compile(rb'charset\s*=[\s"]*+(?!utf|us-ascii)', re.IGNORECASE)


class NotLspError(ValueError):
    """What arrived is no LSP message, or too long a one; nothing after it may be read."""


class MessageReader:
    """Reads the bodies of messages. An HTTP request, whose body could be one, ends it."""

    def __init__(self, stream: asyncio.StreamReader, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self._stream = stream

    async def body(self) -> bytes | None:
        """The next body; None at the end of the stream. Raises NotLspError, IncompleteReadError."""
        num_bytes: int | None = None
        while line := await self._line():
            name, colon, value = line.partition(b":")
            if colon and name.strip().lower() == b"content-length":
                num_bytes = self._num_bytes(value.strip())
            elif colon and name.strip().lower() == b"content-type":
                if _OTHER_CHARSET.search(value):
                    raise NotLspError("a message that is not in UTF-8")
            elif not colon and line.strip():
                raise NotLspError("a line that is no header, as `Content-Length: 123` would be")
            elif not colon and num_bytes is not None:
                return await self._stream.readexactly(num_bytes)
        return None

    async def _line(self) -> bytes:
        """A header line with its end; empty at the end of the stream."""
        line = b""
        while not line.endswith(b"\n") and (byte := await self._stream.read(1)):
            line += byte
            if len(line) > HEADER_BYTES or _LINE.fullmatch(line) is None:
                raise NotLspError("something else than a header, as `Content-Length: 123` would be")
        return line

    def _num_bytes(self, value: bytes) -> int:
        if _LENGTH.fullmatch(value) is None or int(value) > self.max_bytes:
            raise NotLspError(f"a length that is no number up to {self.max_bytes:,}")
        return int(value)


def stream_of(descriptor: int) -> asyncio.StreamReader:
    """What arrives there. A thread reads it: not every system has event loops that read any file."""
    stream, loop = asyncio.StreamReader(), asyncio.get_running_loop()

    def read() -> None:
        with suppress(RuntimeError):  # the loop was closed meanwhile
            while piece := os.read(descriptor, _PIECE_BYTES):
                loop.call_soon_threadsafe(stream.feed_data, piece)
            loop.call_soon_threadsafe(stream.feed_eof)

    threading.Thread(target=read, daemon=True).start()
    return stream
