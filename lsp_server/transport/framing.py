"""LSP messages from a stream that anybody may write to: nothing but LSP, and within bounds."""

import asyncio
import re

HEADER_BYTES = 1_024  # of one line
_LENGTH = re.compile(rb"Content-Length: ([0-9]{1,12})\r\n")
_TYPE = re.compile(rb"Content-Type: [ -~]*\r\n")


class NotLspError(ValueError):
    """What arrived is no LSP message, or too long a one; nothing after it may be read."""


class MessageReader:
    """Reads the header lines and bodies that pygls asks for.

    pygls skips lines that it does not know, so that an HTTP request whose body is a message would
    be one.
    """

    def __init__(self, stream: asyncio.StreamReader, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self._stream = stream
        self._has_length = False

    async def readline(self) -> bytes:
        """A header line with its end; empty at the end of the stream. Raises NotLspError."""
        line = await self._stream.readline()  # a ValueError where it has no end in sight
        if (length := _LENGTH.fullmatch(line)) is not None:
            if int(length[1]) > self.max_bytes:
                raise NotLspError(f"a message of {int(length[1])} bytes")
            self._has_length = True
        elif line == b"\r\n" and self._has_length:
            self._has_length = False
        elif line and _TYPE.fullmatch(line) is None:
            raise NotLspError("a line that is no header of LSP")
        return line

    async def readexactly(self, num_bytes: int, /) -> bytes:
        """A body."""
        return await self._stream.readexactly(num_bytes)
