"""Headers in all the ways in which editors write them, and what is none."""

import asyncio
import os

import pytest

from lsp_server.transport.framing import MessageReader, NotLspError, stream_of

pytestmark = pytest.mark.asyncio


def reader_of(said):
    """A reader of what was said; the other side may say more."""
    stream = asyncio.StreamReader()
    stream.feed_data(said)
    return MessageReader(stream, 1_000)


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
        assert await reader.body() == b"{}"
        assert await reader.body() == b"{}"


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
        b"Content-Length: 1001\r\n\r\n",
        b"Content-Length: " + b"9" * 5_000,
        b"Content-Type: " + b"x" * 5_000,
        b"Content-Type: a; charset=iso-8859-1\r\nContent-Length: 2\r\n\r\n{}",
        b"Content-Type: a\r\n\r\n{}",
        b"Length\r\n",
        b"GET / HTTP/1.1\r\n",
        b"\xef\xbb\xbfContent-Length: 2\r\n\r\n{}",
        b"\x16\x03\x01\x02\x00\x01\x00",  # the beginning of TLS
        b"\0",
    ],
)
async def test_what_is_no_header_is_an_error_as_soon_as_it_can_be_told(said):
    reader = reader_of(said)
    async with asyncio.timeout(5):
        with pytest.raises(NotLspError):
            await reader.body()


async def test_an_empty_body_is_a_body_and_the_next_message_is_read():
    reader = reader_of(b"Content-Length: 0\r\n\r\nContent-Length: 2\r\n\r\n{}")
    assert (await reader.body(), await reader.body()) == (b"", b"{}")


async def test_a_pipe_that_arrives_in_pieces_is_read_to_its_end():
    source, target = os.pipe()
    reader = MessageReader(stream_of(source), 10**6)
    body = b"x" * 300_000
    said = b"Content-Length: %d\r\n\r\n%s" % (len(body), body)

    def write():
        for at in range(0, len(said), 7_001):
            os.write(target, said[at : at + 7_001])
        os.close(target)

    writing = asyncio.to_thread(write)
    assert (await asyncio.gather(reader.body(), writing))[0] == body
    assert await reader.body() is None
    os.close(source)
