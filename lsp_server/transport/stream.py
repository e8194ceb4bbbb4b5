"""LSP messages from a stream, handled one after the other until the client leaves."""

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
HEADER_BYTES = 1_024  # of one line
_MAX_MESSAGE_BYTES = 2**27  # of the largest document, six bytes for each character
_PIECE_BYTES = 2**16  # that are read from a pipe at once
_COLLECT_S = 1.0  # after a client has gone
# A header line as far as it has come: at the first byte of something else, nobody waits for its end.
_LINE = re.compile(rb"(?:[a-z][\w-]*[ \t]*(?::[^\r\n]*)?)?\r?\n?", re.IGNORECASE)
_LENGTH = re.compile(rb"[0-9]{1,12}")
_OTHER_CHARSET = re.compile(rb'charset\s*=[\s"]*+(?!utf|us-ascii)', re.IGNORECASE)


class NotLspError(ValueError):
    """What arrived is no LSP message, or too long a one; nothing after it may be read."""


async def serve_connection(
    create: Callable[[], DocumentServer], stream: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """Serve a connection by a server of its own until one side ends it."""
    # Ctrl-C cancels each connection, and asyncio would print a stack for it.
    with suppress(asyncio.CancelledError):
        try:
            server = create()
            server.protocol.set_writer(writer)
            await serve(server, stream)
        finally:
            writer.close()
            # What a client had is a circle, which Python would keep for hours.
            asyncio.get_running_loop().call_later(_COLLECT_S, gc.collect)


async def serve(server: DocumentServer, stream: asyncio.StreamReader) -> int:
    """Handle messages until the client exits or its stream ends; the exit status as LSP has it."""
    try:
        await _handle_messages(server, stream)
    except SystemExit as exit_request:
        return int(exit_request.code or 0)
    except NotLspError as error:
        _LOG.error("what came was not LSP: %s", error)
        return 1
    except (ConnectionError, asyncio.IncompleteReadError):
        return 1  # it left in the middle of a message
    finally:
        await server.leave()
        server.thread_pool.shutdown(wait=False, cancel_futures=True)
    return 0


async def read_body(
    stream: asyncio.StreamReader, max_bytes: int = _MAX_MESSAGE_BYTES
) -> bytes | None:
    """The next message; None at the end of the stream. Raises NotLspError, IncompleteReadError."""
    num_bytes: int | None = None
    while line := await _header_line(stream):
        name, colon, value = line.partition(b":")
        name, value = name.strip().lower(), value.strip()
        if line.strip() and not colon:
            raise NotLspError("a line that is no header, as `Content-Length: 123` would be")
        if name == b"content-length":
            if _LENGTH.fullmatch(value) is None or int(value) > max_bytes:
                raise NotLspError(f"a length that is no number up to {max_bytes:,}")
            num_bytes = int(value)
        elif name == b"content-type" and _OTHER_CHARSET.search(value):
            raise NotLspError("a message that is not in UTF-8")
        elif not colon and num_bytes is not None:
            return await stream.readexactly(num_bytes)
    return None


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


async def _header_line(stream: asyncio.StreamReader) -> bytes:
    """A header line with its end; empty at the end of the stream. Raises NotLspError."""
    line = b""
    while not line.endswith(b"\n") and (byte := await stream.read(1)):
        line += byte
        if len(line) > HEADER_BYTES or _LINE.fullmatch(line) is None:
            raise NotLspError("something else than a header, as `Content-Length: 123` would be")
    return line


async def _handle_messages(server: DocumentServer, stream: asyncio.StreamReader) -> None:
    """Hand each message to the protocol, one after the other, until the stream ends.

    What fails may have been a change of any document. pygls would look for messages within messages:
    an object in the params that has a key "jsonrpc" would be read as one, and the request around it
    never answered.
    """
    while (body := await read_body(stream)) is not None:
        message: object = None
        try:
            message = _message(body)
            server.protocol.handle_data(message)
        except Exception as error:  # noqa: BLE001 - whatever one message meets, the next is read
            if not isinstance(message, dict) or "method" in message:
                server.documents.lose_step(None)
            server.report_server_error(error, JsonRpcException)
        await asyncio.sleep(0)  # however many have arrived, what this one began goes first


def _message(body: bytes) -> object:
    """What a body says. A byte that is no UTF-8, as a file may hold, is one character.

    msgspec takes a third of the time, and no half of a surrogate pair.
    """
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return json.loads(body.decode("utf-8-sig", "surrogateescape"))
