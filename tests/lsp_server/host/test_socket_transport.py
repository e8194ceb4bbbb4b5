"""A host's socket is spoken to over asyncio's own streams, and every failure is one of httpx2."""

import asyncio
from contextlib import asynccontextmanager, suppress

import httpx2
import pytest

from lsp_server.host.socket_transport import SocketTransport

pytestmark = pytest.mark.asyncio

ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


@asynccontextmanager
async def answering(path, answer):
    """A server on a socket that calls `answer(reader, writer)` for each connection."""
    connections = []

    async def connected(reader, writer):
        connections.append(writer)
        with suppress(asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            await answer(reader, writer)
        writer.close()

    server = await asyncio.start_unix_server(connected, path)
    try:
        yield connections
    finally:
        server.close()
        for one in connections:
            one.transport.abort()


def client(path, **options):
    return httpx2.AsyncClient(transport=SocketTransport(path), base_url="http://host", **options)


@pytest.fixture
def path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # a socket's whole path may be too long
    return "s"


async def always(reader, writer):
    while True:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(ANSWER)


async def test_requests_share_a_connection(path):
    async with answering(path, always) as connections, client(path) as http:
        assert [(await http.get("/")).text for _ in range(3)] == ["ok"] * 3
    assert len(connections) == 1


async def test_a_connection_that_the_host_has_closed_is_not_used_again(path):
    async def once(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(ANSWER)

    async with answering(path, once) as connections, client(path) as http:
        for _ in range(2):
            assert (await http.get("/")).text == "ok"
            while not connections[-1].transport.is_closing():
                await asyncio.sleep(0)
            await asyncio.sleep(0.05)
    assert len(connections) == 2


async def test_no_host_is_a_connect_error(path):
    async with client(path) as http:
        with pytest.raises(httpx2.ConnectError):
            await http.get("/")


async def test_a_host_that_says_nothing_is_a_timeout(path):
    async def silent(reader, _):
        await reader.read()

    async with answering(path, silent), client(path, timeout=0.05) as http:
        with pytest.raises(httpx2.ReadTimeout):
            await http.get("/")


async def test_a_host_that_goes_in_the_middle_is_a_protocol_error(path):
    async def broken(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(ANSWER[:-1])

    async with answering(path, broken), client(path) as http:
        with pytest.raises(httpx2.RemoteProtocolError):
            await http.get("/")


async def test_requests_that_end_while_their_answers_arrive_leave_nothing_in_the_log(path, caplog):
    """anyio's streams left an InvalidStateError where both happened in one turn of the loop."""
    async with answering(path, always), client(path) as http:
        for turns in range(60):
            asking = asyncio.create_task(http.get("/"))
            for _ in range(turns):
                await asyncio.sleep(0)
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)
    assert not caplog.records
