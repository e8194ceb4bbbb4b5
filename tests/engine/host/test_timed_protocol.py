"""A client that is too slow loses its connection, and no one else's: with a line in the log."""

import asyncio
import logging

import msgspec
import pytest
import pytest_asyncio

from engine.host import draining_server, timed_protocol
from engine.host.timed_protocol import GatheredWrites
from tests.support.held_engine import HeldEngine
from tests.support.raw_requests import HEAD, connected, ended, is_served
from tests.support.running_host import ask, buffer, running_host

pytestmark = pytest.mark.asyncio


@pytest.fixture
def limits(monkeypatch):
    """Sets limits, and has connections looked at often."""
    monkeypatch.setattr(timed_protocol, "_LOOK_S", 0.02)

    def set_limits(**given):
        for name, seconds in given.items():
            monkeypatch.setattr(timed_protocol, name, seconds)

    return set_limits


@pytest.mark.parametrize("sent", [b"", b"POST /v1/complete HTTP/1.1\r\nhost: h"])
async def test_headers_that_do_not_end_are_waited_for_no_longer(tmp_path, caplog, limits, sent):
    limits(HEADERS_S=0.2)
    async with running_host(tmp_path, HeldEngine()) as host:
        reader, writer = await connected(tmp_path)
        writer.write(sent)
        assert await reader.read() == b""
        await ended(
            caplog, "a connection was ended: its request had no end of headers within 0.2 s"
        )
        assert await is_served(host)
        writer.close()


async def test_many_connections_that_are_ended_leave_a_line_a_minute(tmp_path, caplog, limits):
    limits(HEADERS_S=0.1)
    async with running_host(tmp_path, HeldEngine()):
        for _ in range(3):
            reader, writer = await connected(tmp_path)
            assert await reader.read() == b""
            writer.close()
    assert sum("was ended" in message for message in caplog.messages) == 1


async def test_a_further_request_on_a_connection_has_no_more_time_for_its_headers(
    tmp_path, caplog, limits
):
    limits(HEADERS_S=0.2)
    async with running_host(tmp_path, HeldEngine()):
        reader, writer = await connected(tmp_path)
        writer.write(f"{HEAD.format('GET', 'status')}\r\n".encode())
        assert (await reader.readline()).startswith(b"HTTP/1.1 200")
        writer.write(b"GET /v1/sta")
        await reader.read()
        await ended(caplog, "its request had no end of headers")
        writer.close()


async def test_a_body_that_does_not_end_is_waited_for_no_longer(tmp_path, caplog, limits):
    limits(BODY_S=0.2)
    async with running_host(tmp_path, HeldEngine()) as host:
        reader, writer = await connected(tmp_path)
        writer.write(f"{HEAD.format('POST', 'complete')}content-length: 99\r\n\r\n{{".encode())
        assert await reader.read() == b""
        await ended(caplog, "its request had no end of body within 0.2 s")
        assert await is_served(host)
        writer.close()


async def test_a_stream_that_is_not_read_is_ended_and_others_are_served(tmp_path, caplog, limits):
    limits(UNREAD_S=0.3)
    engine = HeldEngine(words=("x" * 100_000,) * 200)
    body = msgspec.json.encode(ask(buffer("x")))
    async with running_host(tmp_path, engine) as host:
        reader, writer = await connected(tmp_path)
        head = f"{HEAD.format('POST', 'complete')}content-length: {len(body)}\r\n\r\n"
        writer.write(head.encode() + body)
        await reader.readline()  # and not another byte
        await ended(caplog, "it did not read what was written to it within 0.3 s")
        engine.words = ("one ", "two ", "three")
        assert await is_served(host)
        writer.transport.abort()


async def test_whoever_waits_for_an_answer_is_in_no_hurry(tmp_path, caplog, limits):
    """A completion may take long: the limits are on the client."""
    limits(HEADERS_S=0.1, BODY_S=0.1, UNREAD_S=0.1)
    caplog.set_level(logging.WARNING)
    engine = HeldEngine(is_held=True)
    async with running_host(tmp_path, engine) as host:
        events = host.complete(ask(buffer("x")))
        first = asyncio.create_task(anext(events))
        await asyncio.to_thread(engine.began.acquire)
        loop = asyncio.get_running_loop()
        until = loop.time() + 0.4
        while loop.time() < until:
            await asyncio.sleep(0.05)
        engine.is_held = False
        assert (await first).text == "one "
        assert [event async for event in events][-1].text == "one two three"
    assert "was ended" not in caplog.text


async def test_a_body_that_comes_after_its_refusal_leaves_nothing_to_wait_for(
    tmp_path, monkeypatch, caplog, limits
):
    limits(HEADERS_S=0.1)
    config = draining_server._config

    def quick(*given):
        made = config(*given)
        made.timeout_keep_alive = 1
        return made

    monkeypatch.setattr(draining_server, "_config", quick)
    async with running_host(tmp_path, HeldEngine()):
        reader, writer = await connected(tmp_path)
        writer.write(f"{HEAD.format('POST', 'nothing')}content-length: 2\r\n\r\n".encode())
        assert (await reader.readline()).startswith(b"HTTP/1.1 404")
        writer.write(b"{}")
        await reader.read()
        writer.close()
    assert "was ended" not in caplog.text


async def test_connections_without_a_request_make_room_for_those_with_one(
    tmp_path, caplog, monkeypatch
):
    monkeypatch.setattr(draining_server, "_most_connections", lambda: 16)
    async with running_host(tmp_path, HeldEngine()) as host:
        idle = [await connected(tmp_path) for _ in range(40)]
        assert await is_served(host)
        reader, writer = await connected(tmp_path)
        writer.write(b"GET /health HTTP/1.1\r\nhost: host\r\n\r\n")
        assert (await reader.readline()).startswith(b"HTTP/1.1 200")
        assert await idle[0][0].read() == b""
        await ended(caplog, "a connection was ended: there are many")
        for _, one in (*idle, (reader, writer)):
            one.close()


class Wire(asyncio.Transport):
    """Keeps what was written to it."""

    def __init__(self) -> None:
        super().__init__()
        self.pieces: list[bytes] = []
        self.ended = ""

    def write(self, data):
        assert not self.ended
        self.pieces.append(bytes(data))

    def close(self):
        self.ended = "closed"

    def abort(self):
        self.ended = "aborted"

    def get_write_buffer_size(self):
        return 7

    def is_closing(self):
        return bool(self.ended)


@pytest.fixture
def wire():
    return Wire()


@pytest_asyncio.fixture
async def writes(wire):
    return GatheredWrites(wire, asyncio.get_running_loop())


async def test_what_is_written_in_one_turn_leaves_in_one_piece(wire, writes):
    writes.write(b"head ")
    writes.write(b"body")
    assert not wire.pieces
    await asyncio.sleep(0)
    writes.write(b" more")
    await asyncio.sleep(0)
    assert wire.pieces == [b"head body", b" more"]


async def test_much_does_not_wait(wire, writes):
    writes.write(b"x" * 70_000)
    assert len(wire.pieces) == 1
    await asyncio.sleep(0)
    assert len(wire.pieces) == 1


async def test_all_is_written_before_the_connection_is_closed(wire, writes):
    writes.write(b"last words")
    writes.close()
    await asyncio.sleep(0)
    assert (wire.pieces, wire.ended, writes.is_closing()) == ([b"last words"], "closed", True)


async def test_a_connection_that_is_aborted_says_nothing_more(wire, writes):
    writes.write(b"nobody hears it")
    writes.abort()
    await asyncio.sleep(0)
    assert (wire.pieces, wire.ended) == ([], "aborted")


async def test_what_waits_here_counts_as_unread(writes):
    writes.write(b"123")
    assert writes.get_write_buffer_size() == 10


async def test_it_is_closed_once(wire, writes):
    writes.close()
    wire.ended = "closed before"
    writes.close()
    assert wire.ended == "closed before"
