"""Handles LSP messages from a stream, one after the other, until the client leaves."""

import asyncio
import gc
import json
import logging
import os
import re
import threading
from collections.abc import Callable
from contextlib import suppress

import msgspec
from pygls.exceptions import JsonRpcException

from lsp_server.transport.protocol import DocumentServer

_LOG = logging.getLogger(__name__)
HEADER_BYTES = 1_024  # the longest header line; LSP's two headers take less than 100 each
_MAX_MESSAGE_BYTES = 2**27  # room to read, and refuse, 20 MB of text at six bytes per character
_PIECE_BYTES = 2**16  # read from a pipe at once; on Linux, a pipe holds no more
_COLLECT_S = 1.0  # seconds from a client's end to the garbage collection
# Any beginning of a header line, so that other input fails at its first wrong byte.
_LINE = re.compile(rb"(?:[a-z][\w-]*[ \t]*(?::[^\r\n]*)?)?\r?\n?", re.IGNORECASE)
_LENGTH = re.compile(rb"[0-9]{1,12}")
_OTHER_CHARSET = re.compile(rb'charset\s*=[\s"]*+(?!utf|us-ascii)', re.IGNORECASE)


class NotLspError(ValueError):
    """The input is no LSP message, or one too long; the rest of the stream is unusable."""


async def serve_connection(
    create: Callable[[], DocumentServer], stream: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """Serve a connection with its own server until either side ends it."""
    # Ctrl-C cancels each connection, and asyncio would print a stack trace for it.
    with suppress(asyncio.CancelledError):
        try:
            server = create()
            server.protocol.set_writer(writer)
            await serve(server, stream)
        finally:
            writer.close()
            # A client's objects form a reference cycle, which Python would keep for hours.
            asyncio.get_running_loop().call_later(_COLLECT_S, gc.collect)


async def serve(server: DocumentServer, stream: asyncio.StreamReader) -> int:
    """Handle messages until the client exits or its stream ends; return LSP's exit status."""
    try:
        await _handle_messages(server, stream)
    except SystemExit as exit_request:
        return int(exit_request.code or 0)
    except NotLspError as error:
        _LOG.error("what came was not LSP: %s", error)
        return 1
    except (ConnectionError, asyncio.IncompleteReadError):
        return 1  # the client left in the middle of a message
    finally:
        await server.leave()
        server.thread_pool.shutdown(wait=False, cancel_futures=True)
    return 0


async def read_body(stream: asyncio.StreamReader) -> bytes | None:
    """Return the next message, or None at the end. Raises NotLspError, IncompleteReadError."""
    num_bytes: int | None = None
    while line := await _header_line(stream):
        name, colon, value = line.partition(b":")
        name, value = name.strip().lower(), value.strip()
        if line.strip() and not colon:
            raise NotLspError("a line that is no header, as `Content-Length: 123` would be")
        if name == b"content-length":
            if _LENGTH.fullmatch(value) is None or int(value) > _MAX_MESSAGE_BYTES:
                raise NotLspError(f"a length that is no number up to {_MAX_MESSAGE_BYTES:,}")
            num_bytes = int(value)
        elif name == b"content-type" and _OTHER_CHARSET.search(value):
            raise NotLspError("a message that is not in UTF-8")
        elif not colon and num_bytes is not None:
            return await stream.readexactly(num_bytes)
    return None


def stream_of(descriptor: int) -> asyncio.StreamReader:
    """Return a stream that a thread fills, as not every event loop can read any file."""
    stream, loop = asyncio.StreamReader(), asyncio.get_running_loop()

    def read() -> None:
        with suppress(RuntimeError):  # the loop was closed meanwhile
            while piece := os.read(descriptor, _PIECE_BYTES):
                loop.call_soon_threadsafe(stream.feed_data, piece)
            loop.call_soon_threadsafe(stream.feed_eof)

    threading.Thread(target=read, daemon=True).start()
    return stream


async def _header_line(stream: asyncio.StreamReader) -> bytes:
    """Return a header line with its newline, or b"" at the end. Raises NotLspError."""
    line = b""
    while not line.endswith(b"\n") and (byte := await stream.read(1)):
        line += byte
        if len(line) > HEADER_BYTES or _LINE.fullmatch(line) is None:
            raise NotLspError("something else than a header, as `Content-Length: 123` would be")
    return line


async def _handle_messages(server: DocumentServer, stream: asyncio.StreamReader) -> None:
    while (body := await read_body(stream)) is not None:
        message: object = None
        try:
            # pygls' decoder would take any object in the params with a key "jsonrpc" for a message.
            message = _message(body)
            server.protocol.handle_data(message)
        except Exception as error:  # noqa: BLE001 - whatever one message meets, the next is read
            if not isinstance(message, dict) or "method" in message:
                server.documents.lose_step(None)  # it may have changed any document
            server.report_server_error(error, JsonRpcException)
        await asyncio.sleep(0)  # run the work that this message began before reading the next


def _message(body: bytes) -> object:
    """Decode a body. A byte that is not UTF-8, as in some files, becomes one character."""
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):  # json is slower, but takes lone surrogates
        return json.loads(body.decode("utf-8-sig", "surrogateescape"))
