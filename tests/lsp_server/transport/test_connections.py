"""Who reaches a port and is no editor, or none of ours."""

import asyncio
import gc
import weakref
from contextlib import asynccontextmanager, suppress
from functools import partial

import pytest

from lsp_server.server import create_server
from lsp_server.setting_layers import Layer
from lsp_server.transport import connections as module
from lsp_server.transport.connections import MAX_FIRST_BYTES, Connections
from lsp_server.transport.framing import HEADER_BYTES
from tests.support.raw_messages import framed, read_message

pytestmark = pytest.mark.asyncio

TOKEN = "right"
EARLY = framed(
    method="workspace/didChangeConfiguration", params={"settings": {"foregram": {"model": "x"}}}
)


def initialize(token=TOKEN, **options):
    given = {"connectionToken": token, **options} if token is not None else options
    params = {"processId": None, "capabilities": {}, "initializationOptions": given}
    return framed(id=1, method="initialize", params=params)


@asynccontextmanager
async def served(token=TOKEN):
    """Connections on a port; how to connect to it."""
    connections = Connections(partial(create_server, Layer("command line", {})), token)
    server = await asyncio.start_server(connections.serve, "127.0.0.1", 0, limit=HEADER_BYTES)
    opened = []

    async def connect():
        streams = await asyncio.open_connection(*server.sockets[0].getsockname())
        opened.append(streams[1])
        return streams

    yield connect
    for writer in opened:
        writer.close()
    server.close()


async def is_closed(reader):
    """The server says nothing and hangs up."""
    with suppress(ConnectionResetError):
        async with asyncio.timeout(5):
            return await reader.read() == b""
    return True


@pytest.mark.parametrize(
    "said",
    [
        b"POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}",
        b"GET / HTTP/1.1\r\n\r\n",
        b"\r\n",
        b"content of a kind: 3\r\n",
        b"Content-Length: -1\r\n\r\n{}",
        b"Content-Length: 10000000000\r\n\r\n",
        b"Content-Length: %d\r\n\r\n" % (MAX_FIRST_BYTES + 1),
        b"Content-Length: " + b"9" * 5_000 + b"\r\n\r\n",
        b"Content-Type: " + b"x" * 5_000,
        b"\x16\x03\x01\x02\x00\x01\x00",  # the beginning of TLS
    ],
)
async def test_what_is_not_lsp_is_hung_up_on(said, monkeypatch):
    monkeypatch.setattr(module, "_INITIALIZE_S", 0.5)
    async with served() as connect:
        reader, writer = await connect()
        writer.write(said)
        assert await is_closed(reader)


async def test_a_header_may_name_a_type():
    async with served() as connect:
        reader, writer = await connect()
        kind = b"Content-Type: application/vscode-jsonrpc; charset=utf-8\r\n"
        writer.write(kind + initialize())
        assert "result" in await read_message(reader)


async def test_a_later_message_is_looked_at_like_the_first():
    async with served() as connect:
        reader, writer = await connect()
        writer.write(initialize())
        assert "result" in await read_message(reader)
        writer.write(b"POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}")
        assert await is_closed(reader)


@pytest.mark.parametrize(
    ("token", "what"),
    [
        (None, "is missing"),
        ("wrong", "is not"),
        ("", "is not"),
        (7, "is not"),
        ("réelle", "is not"),
    ],
)
async def test_who_does_not_know_the_token_is_told_so_and_heard_no_more(token, what):
    async with served() as connect:
        reader, writer = await connect()
        writer.write(initialize(token) + initialize())  # a second try comes too late
        answer = await read_message(reader)
        assert answer["error"]["message"].startswith(
            f"initializationOptions.connectionToken {what}"
        )
        assert "\n" not in answer["error"]["message"]
        assert await is_closed(reader)


async def test_nothing_is_done_before_a_client_has_shown_the_token():
    async with served() as connect:
        reader, writer = await connect()
        writer.write(EARLY + initialize())
        answer = await read_message(reader)
        assert "result" in answer, answer  # no word of the setting that came before
        writer.write(framed(method="initialized", params={}))
        writer.write(framed(id=2, method="shutdown"))
        assert (await read_message(reader))["id"] == 2


async def test_without_a_token_none_is_asked_for():
    async with served(token=None) as connect:
        reader, writer = await connect()
        writer.write(initialize(None))
        assert "result" in await read_message(reader)


@pytest.mark.parametrize("said", [b"", b"Content-", b"Content-Length: 100\r\n\r\n{", EARLY])
async def test_who_does_not_initialize_in_time_has_to_go(said, monkeypatch):
    monkeypatch.setattr(module, "_INITIALIZE_S", 0.05)
    async with served() as connect:
        reader, writer = await connect()
        writer.write(said)
        assert await is_closed(reader)


async def test_an_editor_may_be_silent_for_as_long_as_it_likes(monkeypatch):
    monkeypatch.setattr(module, "_INITIALIZE_S", 0.3)
    async with served() as connect:
        reader, writer = await connect()
        writer.write(initialize())
        assert "result" in await read_message(reader)
        stranger, _ = await connect()
        assert await is_closed(stranger)  # so much time has passed
        writer.write(framed(id=2, method="shutdown"))
        assert "result" in await read_message(reader)


async def test_strangers_in_great_number_keep_no_editor_away(monkeypatch):
    monkeypatch.setattr(module, "_MAX_UNINITIALIZED", 3)
    async with served() as connect:
        first, *_ = [await connect() for _ in range(20)]
        assert await is_closed(first[0])
        reader, writer = await connect()
        writer.write(initialize())
        assert "result" in await read_message(reader)


async def test_so_many_editors_and_no_more(monkeypatch):
    monkeypatch.setattr(module, "_MAX_CLIENTS", 2)
    async with served() as connect:
        for _ in range(2):
            reader, writer = await connect()
            writer.write(initialize())
            assert "result" in await read_message(reader)
        third, _ = await connect()
        assert await is_closed(third)


async def test_a_client_that_has_gone_leaves_nothing_in_memory():
    """pygls' caches kept all that 120 clients had."""
    made = []

    def create(authentication):
        server = create_server(Layer("command line", {}), authentication)
        made.append(weakref.ref(server))
        return server

    listener = await asyncio.start_server(Connections(create).serve, "127.0.0.1", 0)
    for _ in range(3):
        reader, writer = await asyncio.open_connection(*listener.sockets[0].getsockname())
        writer.write(initialize(None))
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
