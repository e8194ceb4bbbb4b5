"""What a connection sends has limits of size and of time; what ends it ends no one else's."""

import asyncio
import logging
from contextlib import asynccontextmanager

import msgspec
import pytest

from engine.host import connection, server
from engine.host.protocol import PROTOCOL_HEADER, PROTOCOL_VERSION
from engine.request import FinishReason
from tests.support.held_engine import HeldEngine
from tests.support.polling import eventually
from tests.support.running_host import ask, buffer, running_host

HEAD = (
    "{} /v1/{} HTTP/1.1\r\nhost: host\r\ncontent-type: application/json\r\n"
    f"{PROTOCOL_HEADER}: {PROTOCOL_VERSION}\r\n"
)
STATUS = f"{HEAD.format('GET', 'status')}\r\n".encode()
CHUNKED = (
    f"{HEAD.format('POST', 'complete')}transfer-encoding: chunked\r\n\r\n2\r\n{{}}\r\n".encode()
)


def completion():
    body = msgspec.json.encode(ask(buffer("x")))
    head = f"{HEAD.format('POST', 'complete')}content-length: {len(body)}\r\n\r\n"
    return head.encode() + body


def connected(folder):
    return asyncio.open_unix_connection(folder / "host.sock")


async def ended(caplog, reason):
    """Wait until a connection ends for that reason."""
    await eventually(lambda: any(reason in message for message in caplog.messages))


async def is_served(host):
    """Whether another client gets a completion of a HeldEngine."""
    return (await host.answered(ask(buffer("x"))))[-1].text == "one two three"


@asynccontextmanager
async def talking(folder, engine):
    """A host, and a connection to it."""
    async with running_host(folder, engine) as host:
        reader, writer = await connected(folder)
        yield host, reader, writer
        writer.close()


@pytest.fixture
def limits(monkeypatch):
    """Sets limits, and has connections looked at often."""
    monkeypatch.setattr(connection, "_LOOK_S", 0.02)

    def set_limits(**given):
        for name, seconds in given.items():
            monkeypatch.setattr(connection, name, seconds)

    return set_limits


async def test_a_body_that_was_refused_is_read_no_further_and_the_answer_reaches_its_client(
    tmp_path,
):
    async with talking(tmp_path, HeldEngine()) as (host, reader, writer):
        writer.write(f"{HEAD.format('POST', 'nothing')}content-length: 30000000\r\n\r\n".encode())
        assert (await reader.readline()).startswith(b"HTTP/1.1 404")
        writer.write(b"x" * 20_000_000)
        with pytest.raises(OSError):  # noqa: PT011 - which one is the system's choice
            await writer.drain()
        assert await is_served(host)


@pytest.mark.parametrize(
    "line", [b"x-name: value\r\n", b"x" * 1000, b"x: " + b"y" * 1000], ids=["many", "name", "value"]
)
async def test_headers_without_an_end_are_refused_with_a_sentence(tmp_path, line):
    async with talking(tmp_path, HeldEngine()) as (host, reader, writer):
        writer.write(b"GET /v1/status HTTP/1.1\r\nhost: host\r\n")
        writer.write(line * (1 + 2**16 // len(line)))
        answer = await reader.read()
        assert answer.startswith(b"HTTP/1.1 400")
        assert await is_served(host)


@pytest.mark.parametrize("before", [b"", completion()], ids=["first", "behind another"])
@pytest.mark.parametrize(
    "fields", [b"x:\r\n" * 257, b"x: " + b"y" * 2**14 + b"\r\n"], ids=["many", "long"]
)
async def test_a_long_head_that_comes_at_once_is_refused(tmp_path, before, fields):
    async with talking(tmp_path, HeldEngine()) as (host, reader, writer):
        writer.write(before + STATUS[:-2] + fields + b"\r\n")
        answers = await reader.read()
        assert answers.count(b"HTTP/1.1 200") == bool(before)
        assert b"HTTP/1.1 400" in answers
        assert b"bytes of headers" in answers
        assert await is_served(host)


@pytest.mark.parametrize("is_apart", [True, False])
async def test_empty_lines_behind_a_body_are_no_request(tmp_path, is_apart):
    engine = HeldEngine(is_held=True)
    async with talking(tmp_path, engine) as (_, reader, writer):
        writer.write(completion() if is_apart else completion() + b"\r\n")
        await asyncio.to_thread(engine.began.acquire)
        engine.is_held = False
        if is_apart:
            writer.write(b"\r\n")
        answer = await reader.readuntil(b"0\r\n\r\n")
        writer.write(b"\r\n" + STATUS)
        assert b"one two three" in answer
        assert await reader.readline() == b"HTTP/1.1 200 OK\r\n"


@pytest.mark.parametrize("more", [b"\r\n", b"\r\n" + STATUS], ids=["empty line", "request"])
async def test_what_follows_the_last_request_is_not_read(tmp_path, more):
    engine = HeldEngine(is_held=True)
    async with talking(tmp_path, engine) as (_, reader, writer):
        writer.write(completion().replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n", 1))
        await asyncio.to_thread(engine.began.acquire)
        writer.write(more)
        await writer.drain()
        await asyncio.sleep(0.05)
        engine.is_held = False
        answer = await reader.read()
        assert b"one two three" in answer
        assert answer.count(b"HTTP/1.1") == 1


@pytest.mark.parametrize("is_streamed", [True, False])
async def test_an_answer_to_http_1_0_has_no_chunks_and_ends_with_its_connection(
    tmp_path, is_streamed
):
    body = msgspec.json.encode({"prompt": "x", "stream": is_streamed})
    head = "POST /v1/completions HTTP/1.0\r\ncontent-type: application/json\r\n"
    async with talking(tmp_path, HeldEngine()) as (_, reader, writer):
        writer.write(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)
        answer = (await reader.read()).decode()
    head, _, content = answer.partition("\r\n\r\n")
    assert head.startswith("HTTP/1.1 200")
    assert "connection: close" in head.lower()
    assert "transfer-encoding" not in head
    if is_streamed:
        assert all(line.startswith("data: ") for line in content.split("\n\n")[:-1])
        assert content.endswith("data: [DONE]\n\n")
    else:
        assert msgspec.json.decode(content)["choices"][0]["text"] == "one two three"


async def test_a_long_body_is_no_head(tmp_path):
    async with talking(tmp_path, HeldEngine()) as (_, reader, writer):
        body = b'{"unknown": "' + b"x" * 300_000 + b'"}'
        head = f"{HEAD.format('POST', 'complete')}content-length: {len(body)}\r\n\r\n"
        writer.write(head.encode() + body)
        answer = await reader.readuntil(b"}")
        assert b"content-type: application/json" in answer  # it was read, and is no completion's


async def test_requests_that_come_at_once_are_answered_in_their_order(tmp_path):
    async with talking(tmp_path, HeldEngine()) as (_, reader, writer):
        last = STATUS.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n")
        writer.write(completion() + STATUS.replace(b"status", b"nothing") + last)
        answers = await reader.read()
        assert [one[:3] for one in answers.split(b"HTTP/1.1 ")[1:]] == [b"200", b"404", b"200"]
        assert answers.index(b"one two three") < answers.index(b"404 Not Found")


async def test_of_requests_that_came_at_once_the_one_that_runs_ends_with_its_client(tmp_path):
    engine = HeldEngine(is_held=True)
    async with talking(tmp_path, engine) as (_, _, writer):
        writer.write(completion() + STATUS)
        await asyncio.to_thread(engine.began.acquire)
        writer.transport.abort()
        await eventually(lambda: FinishReason.CANCELLED in engine.ended)


async def test_what_is_no_request_is_refused_behind_the_answer_that_is_under_way(tmp_path):
    engine = HeldEngine(is_held=True)
    async with talking(tmp_path, engine) as (_, reader, writer):
        writer.write(completion())
        await asyncio.to_thread(engine.began.acquire)
        engine.permits.release()
        answer = await reader.readuntil(b"one ")
        writer.write(b"\0 is no request\r\n\r\n")
        engine.is_held = False
        answer += await reader.read()
        done, refused = answer.split(b"0\r\n\r\n", 1)
        assert b"one two three" in done
        assert refused.startswith(b"HTTP/1.1 400")


@pytest.mark.parametrize(
    "more", [b"", b"content-length: 7\r\n"], ids=["no length", "two ends of it"]
)
async def test_a_body_that_does_not_tell_its_length_is_refused_and_what_follows_is_not_read(
    tmp_path, more
):
    async with talking(tmp_path, HeldEngine()) as (host, reader, writer):
        writer.write(CHUNKED.replace(b"transfer", more + b"transfer") + b"0\r\n\r\n" + STATUS)
        answers = await reader.read()
        assert answers.startswith(b"HTTP/1.1 411")
        assert answers.count(b"HTTP/1.1") == 1
        assert await is_served(host)


async def test_a_protocol_that_is_not_spoken_here_is_not_changed_to(tmp_path):
    """Java's own client wishes for HTTP/2 so, with its first request."""
    wish = b"connection: upgrade, http2-settings\r\nupgrade: h2c\r\nhttp2-settings: AAA\r\n\r\n"
    async with talking(tmp_path, HeldEngine()) as (_, reader, writer):
        head, _, body = completion().partition(b"\r\n\r\n")
        for parts in ((head + b"\r\n" + wish + body,), (head + b"\r\n" + wish, body)):
            for part in parts:
                writer.write(part)
                await writer.drain()
            assert await reader.readline() == b"HTTP/1.1 200 OK\r\n"
            await reader.readuntil(b"0\r\n\r\n")
        writer.write(STATUS.replace(b"\r\n\r\n", b"\r\n" + wish))
        assert await reader.readline() == b"HTTP/1.1 200 OK\r\n"


@pytest.mark.parametrize(
    "sent",
    [
        completion().replace(b"content-length", b"content-length: 7\r\ncontent-length"),
        CHUNKED.replace(b": chunked", b": gzip, chunked"),
        STATUS.replace(b"host: host\r\n", b""),
        STATUS.replace(b"host: host", b"host: host\r\nhost: other"),
        STATUS.replace(b"host", b"host "),
        b"GET\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    ],
    ids=[
        "two_lengths",
        "gzip",
        "no_host",
        "two_hosts",
        "space",
        "no_path",
        "tls",
    ],
)
async def test_what_is_no_request_is_refused_with_a_sentence(tmp_path, caplog, sent):
    async with talking(tmp_path, HeldEngine()) as (host, reader, writer):
        writer.write(sent)
        answer = await reader.read()
        assert answer.startswith(b"HTTP/1.1 400")
        assert answer.partition(b"\r\n\r\n")[2]
        assert "Traceback" not in caplog.text
        assert await is_served(host)


UNENDED = f"{HEAD.format('POST', 'complete')}content-length: 99\r\n\r\n{{".encode()


@pytest.mark.parametrize(
    ("limit", "sent", "what"),
    [
        ("HEADERS_S", b"", "headers"),
        ("HEADERS_S", b"POST /v1/complete HTTP/1.1\r\nhost: h", "headers"),
        ("BODY_S", UNENDED, "body"),
    ],
)
async def test_a_request_that_does_not_end_is_waited_for_no_longer(
    tmp_path, caplog, limits, limit, sent, what
):
    limits(**{limit: 0.2})
    async with talking(tmp_path, HeldEngine()) as (host, reader, writer):
        writer.write(sent)
        assert await reader.read() == b""
        reason = f"a connection was ended: its request had no end of {what} within 0.2 s"
        await ended(caplog, reason)
        assert await is_served(host)


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
    async with talking(tmp_path, HeldEngine()) as (_, reader, writer):
        writer.write(f"{HEAD.format('GET', 'status')}\r\n".encode())
        assert (await reader.readline()).startswith(b"HTTP/1.1 200")
        writer.write(b"GET /v1/sta")
        await reader.read()
        await ended(caplog, "its request had no end of headers")


async def test_a_stream_that_is_not_read_is_ended_and_others_are_served(tmp_path, caplog, limits):
    limits(UNREAD_S=0.3)
    engine = HeldEngine(words=("x" * 100_000,) * 200)
    body = msgspec.json.encode(ask(buffer("x")))
    async with talking(tmp_path, engine) as (host, reader, writer):
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
    config = server._config

    def quick(*given):
        made = config(*given)
        made.timeout_keep_alive = 1
        return made

    monkeypatch.setattr(server, "_config", quick)
    async with talking(tmp_path, HeldEngine()) as (_, reader, writer):
        writer.write(f"{HEAD.format('POST', 'nothing')}content-length: 2\r\n\r\n".encode())
        assert (await reader.readline()).startswith(b"HTTP/1.1 404")
        writer.write(b"{}")
        await reader.read()
    assert "was ended" not in caplog.text


async def test_connections_without_a_request_make_room_for_those_with_one(
    tmp_path, caplog, monkeypatch
):
    monkeypatch.setattr(server, "_most_connections", lambda: 16)
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
