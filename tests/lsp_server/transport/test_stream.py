"""Headers in all the ways in which editors write them, what is none, and what a client leaves."""

import asyncio
import gc
import os
import weakref
from functools import partial

import pytest

from lsp_server.server import create_server
from lsp_server.setting_layers import Layer
from lsp_server.transport.stream import (
    HEADER_BYTES,
    NotLspError,
    read_body,
    serve_connection,
    stream_of,
)
from tests.support.raw_messages import framed, read_message


def reader_of(said):
    """A stream of what was said; the other side may say more."""
    stream = asyncio.StreamReader(limit=HEADER_BYTES)
    stream.feed_data(said)
    return stream


@pytest.mark.parametrize(
    "head",
    [
        b"Content-Length: 2\r\n\r\n",
        b"content-length: 2\r\n\r\n",
        b"CONTENT-LENGTH:2\r\n\r\n",
        b"Content-Length:  2\r\n\r\n",
        b"Content-Length:\t2 \r\n\r\n",
        b"Content-Length : 2\r\n\r\n",
        b"Content-Length: 002\r\n\r\n",
        b"Content-Length: 2\n\n",
        b"Content-Length: 2\r\n\n",
        b"\r\nContent-Length: 2\r\n\r\n",
        b"Content-Length: 2\r\nContent-Type: application/vscode-jsonrpc; charset=utf-8\r\n\r\n",
        b"content-type: application/vscode-jsonrpc;charset=UTF8\ncontent-length: 2\n\n",
        b'Content-Type: application/vscode-jsonrpc; charset="utf-8"\r\nContent-Length: 2\r\n\r\n',
        b"Content-Type: application/vscode-jsonrpc\r\nContent-Length: 2\r\n\r\n",
        b"X-Else: 1\r\nContent-Length: 2\r\n\r\n",
    ],
)
async def test_names_have_no_case_and_blanks_are_free(head):
    reader = reader_of(2 * (head + b"{}"))
    async with asyncio.timeout(5):
        assert await read_body(reader) == b"{}"
        assert await read_body(reader) == b"{}"


@pytest.mark.parametrize(
    "said",
    [
        b"{",  # without a header, and perhaps without an end
        b'{"jsonrpc": "2.0"}\n',
        b"[1]",
        b"Content-Length: 2\r\r{}",  # carriage returns alone
        b"Content-Length 2\r\n\r\n{}",
        b"Content-Length: two\r\n\r\n{}",
        b"Content-Length: -2\r\n\r\n{}",
        b"Content-Length: 2.0\r\n\r\n{}",
        b"Content-Length:\r\n\r\n{}",
        b"Content-Length: 134217729\r\n\r\n",
        b"Content-Length: " + b"9" * 5_000,
        b"Content-Type: " + b"x" * 5_000,
        b"Content-Type: a; charset=iso-8859-1\r\nContent-Length: 2\r\n\r\n{}",
        b"Content-Type: a\r\n\r\n{}",
        b"Length\r\n",
        b"GET / HTTP/1.1\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}",
        b"\xef\xbb\xbfContent-Length: 2\r\n\r\n{}",
        b"\x16\x03\x01\x02\x00\x01\x00",  # the beginning of TLS
        b"\0",
    ],
)
async def test_what_is_no_header_is_an_error_as_soon_as_it_can_be_told(said):
    reader = reader_of(said)
    async with asyncio.timeout(5):
        with pytest.raises(NotLspError):
            await read_body(reader)


async def test_an_empty_body_is_a_body_and_the_next_message_is_read():
    reader = reader_of(b"Content-Length: 0\r\n\r\nContent-Length: 2\r\n\r\n{}")
    assert (await read_body(reader), await read_body(reader)) == (b"", b"{}")


async def test_a_pipe_that_arrives_in_pieces_is_read_to_its_end():
    source, target = os.pipe()
    reader = stream_of(source)
    body = b"x" * 300_000
    said = b"Content-Length: %d\r\n\r\n%s" % (len(body), body)

    def write():
        for at in range(0, len(said), 7_001):
            os.write(target, said[at : at + 7_001])
        os.close(target)

    writing = asyncio.to_thread(write)
    assert (await asyncio.gather(read_body(reader), writing))[0] == body
    assert await read_body(reader) is None
    os.close(source)


async def test_a_client_that_has_gone_leaves_nothing_in_memory():
    """pygls' caches kept all that 120 clients had."""
    made = []

    def create():
        server = create_server(Layer("command line", {}))
        made.append(weakref.ref(server))
        return server

    listener = await asyncio.start_server(partial(serve_connection, create), "127.0.0.1", 0)
    for _ in range(3):
        reader, writer = await asyncio.open_connection(*listener.sockets[0].getsockname())
        writer.write(framed(id=1, method="initialize", params={"capabilities": {}}))
        await read_message(reader)
        writer.write(framed(id=2, method="shutdown"))
        while (await read_message(reader)).get("id") != 2:
            pass
        writer.write(framed(method="exit"))
        assert await reader.read() == b""
        writer.close()
    async with asyncio.timeout(10):
        while any(one() for one in made):
            await asyncio.sleep(0.01)
            gc.collect()
    listener.close()
