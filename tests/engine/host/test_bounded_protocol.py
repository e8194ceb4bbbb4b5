"""What a connection sends has limits of size; several requests at once are answered in order."""

import asyncio
from typing import Any

import httptools
import msgspec
import pytest

from engine import FinishReason
from engine.host.bounded_protocol import RequestParser
from tests.support.held_engine import HeldEngine
from tests.support.raw_requests import HEAD, connected, ended, is_served
from tests.support.running_host import ask, buffer, running_host

SECRET = "a-secret-that-is-long-enough-to-be-a-token"
STATUS = f"{HEAD.format('GET', 'status')}\r\n".encode()
TOO_LONG = "a request had more than 65536 bytes of headers, or 256 of them"
CHUNKED = (
    f"{HEAD.format('POST', 'complete')}transfer-encoding: chunked\r\n\r\n2\r\n{{}}\r\n".encode()
)


def completion():
    body = msgspec.json.encode(ask(buffer("x")))
    head = f"{HEAD.format('POST', 'complete')}content-length: {len(body)}\r\n\r\n"
    return head.encode() + body


@pytest.mark.asyncio
async def test_a_body_that_was_refused_is_read_no_further_and_the_answer_reaches_its_client(
    tmp_path,
):
    async with running_host(tmp_path, HeldEngine()) as host:
        reader, writer = await connected(tmp_path)
        writer.write(f"{HEAD.format('POST', 'nothing')}content-length: 30000000\r\n\r\n".encode())
        assert (await reader.readline()).startswith(b"HTTP/1.1 404")
        writer.write(b"x" * 20_000_000)
        with pytest.raises(OSError):  # noqa: PT011 - which one is the system's choice
            await writer.drain()
        assert await is_served(host)
        writer.close()


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "line", [b"x-name: value\r\n", b"x" * 1000, b"x: " + b"y" * 1000], ids=["many", "name", "value"]
)
async def test_headers_without_an_end_are_refused_with_a_sentence(tmp_path, line):
    async with running_host(tmp_path, HeldEngine()) as host:
        reader, writer = await connected(tmp_path)
        writer.write(b"GET /v1/status HTTP/1.1\r\nhost: host\r\n")
        for _ in range(1 + 2**16 // len(line)):
            writer.write(line)
        answer = await reader.read()
        assert answer.startswith(b"HTTP/1.1 400")
        assert TOO_LONG.encode() in answer
        assert await is_served(host)
        writer.close()


@pytest.mark.asyncio
@pytest.mark.parametrize("is_streamed", [True, False])
async def test_an_answer_to_http_1_0_has_no_chunks_and_ends_with_its_connection(
    tmp_path, is_streamed
):
    body = msgspec.json.encode({"prompt": "x", "stream": is_streamed})
    head = "POST /v1/completions HTTP/1.0\r\ncontent-type: application/json\r\n"
    async with running_host(tmp_path, HeldEngine()):
        reader, writer = await connected(tmp_path)
        writer.write(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)
        answer = (await reader.read()).decode()
        writer.close()
    head, _, content = answer.partition("\r\n\r\n")
    assert head.startswith("HTTP/1.1 200")
    assert "connection: close" in head
    assert "transfer-encoding" not in head
    if is_streamed:
        assert all(line.startswith("data: ") for line in content.split("\n\n")[:-1])
        assert content.endswith("data: [DONE]\n\n")
    else:
        assert msgspec.json.decode(content)["choices"][0]["text"] == "one two three"


@pytest.mark.asyncio
async def test_small_bodies_in_chunks_pass_beside_plain_requests(tmp_path):
    """Each once counted as the largest that there may be, so that the second was refused."""
    body = b"%x\r\n%s\r\n0\r\n\r\n" % (1024, b'{"prompt": "%s"}' % (b"x" * 1010))
    head = "POST /v1/completions HTTP/1.1\r\nhost: host\r\ncontent-type: application/json\r\n"
    tokens = tmp_path / "tokens"
    tokens.write_text(f"ada:{SECRET}\n")
    tokens.chmod(0o600)
    async with running_host(tmp_path, HeldEngine(), token=SECRET, token_file=tokens):
        reader, writer = await connected(tmp_path)
        for _ in range(30):
            writer.write(f"{head}authorization: Bearer {SECRET}\r\n".encode())
            writer.write(b"transfer-encoding: chunked\r\n\r\n" + body)
            assert (await reader.readline()).startswith(b"HTTP/1.1 200")
            headers = await reader.readuntil(b"\r\n\r\n")
            length = int(headers.partition(b"content-length: ")[2].partition(b"\r\n")[0])
            await reader.readexactly(length)
        writer.close()


@pytest.mark.asyncio
async def test_what_stands_behind_a_body_is_no_longer_than_headers(tmp_path, caplog):
    async with running_host(tmp_path, HeldEngine()) as host:
        reader, writer = await connected(tmp_path)
        writer.write(CHUNKED + b"0\r\n")
        for _ in range(2**16 // 10):
            writer.write(b"x-name: value\r\n")
        assert await reader.read() == b""
        await ended(caplog, f"a connection was ended: {TOO_LONG}")
        assert await is_served(host)
        writer.close()


@pytest.mark.asyncio
async def test_a_long_body_is_no_head(tmp_path):
    async with running_host(tmp_path, HeldEngine()):
        reader, writer = await connected(tmp_path)
        body = b'{"unknown": "' + b"x" * 300_000 + b'"}'
        head = f"{HEAD.format('POST', 'complete')}content-length: {len(body)}\r\n\r\n"
        writer.write(head.encode() + body)
        answer = await reader.readuntil(b"}")
        assert b"content-type: application/json" in answer  # it was read, and is no completion's
        writer.close()


@pytest.mark.asyncio
async def test_requests_that_come_at_once_are_answered_in_their_order(tmp_path):
    async with running_host(tmp_path, HeldEngine()):
        reader, writer = await connected(tmp_path)
        last = STATUS.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n")
        writer.write(completion() + STATUS.replace(b"status", b"nothing") + last)
        answers = await reader.read()
        assert [one[:3] for one in answers.split(b"HTTP/1.1 ")[1:]] == [b"200", b"404", b"200"]
        assert answers.index(b"one two three") < answers.index(b"404 Not Found")
        writer.close()


@pytest.mark.asyncio
async def test_of_requests_that_came_at_once_the_one_that_runs_ends_with_its_client(tmp_path):
    engine = HeldEngine(is_held=True)
    async with running_host(tmp_path, engine):
        _, writer = await connected(tmp_path)
        writer.write(completion() + STATUS)
        await asyncio.to_thread(engine.began.acquire)
        writer.transport.abort()
        while FinishReason.CANCELLED not in engine.ended:
            await asyncio.sleep(0.01)
        writer.close()


@pytest.mark.asyncio
async def test_only_so_many_requests_wait_on_a_connection(tmp_path, caplog):
    async with running_host(tmp_path, HeldEngine()) as host:
        reader, writer = await connected(tmp_path)
        writer.write(STATUS * 2000)
        answers = await reader.read()
        assert answers.count(b"HTTP/1.1 ") <= 9
        await ended(caplog, "a connection was ended: more than 8 requests waited for an answer")
        assert await is_served(host)
        writer.close()


@pytest.mark.asyncio
async def test_what_is_no_request_is_not_answered_in_the_middle_of_another_answer(tmp_path, caplog):
    engine = HeldEngine(is_held=True)
    async with running_host(tmp_path, engine):
        reader, writer = await connected(tmp_path)
        writer.write(completion())
        await asyncio.to_thread(engine.began.acquire)
        engine.permits.release()
        answer = await reader.readuntil(b"one ")
        writer.write(b"\0 is no request")
        answer += await reader.read()
        assert b"400" not in answer
        await ended(caplog, "a connection was ended: Invalid HTTP request received.")
        writer.close()


@pytest.mark.asyncio
async def test_a_protocol_that_is_not_spoken_here_is_not_changed_to(tmp_path):
    """Java's own client wishes for HTTP/2 so, with its first request."""
    wish = b"connection: upgrade, http2-settings\r\nupgrade: h2c\r\nhttp2-settings: AAA\r\n\r\n"
    async with running_host(tmp_path, HeldEngine()):
        reader, writer = await connected(tmp_path)
        head, _, body = completion().partition(b"\r\n\r\n")
        for parts in ((head + b"\r\n" + wish + body,), (head + b"\r\n" + wish, body)):
            for part in parts:
                writer.write(part)
                await writer.drain()
            assert await reader.readline() == b"HTTP/1.1 200 OK\r\n"
            await reader.readuntil(b"0\r\n\r\n")
        writer.write(STATUS.replace(b"\r\n\r\n", b"\r\n" + wish))
        assert await reader.readline() == b"HTTP/1.1 200 OK\r\n"
        writer.close()


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "sent",
    [
        CHUNKED.replace(b"transfer", b"content-length: 7\r\ntransfer"),
        completion().replace(b"content-length", b"content-length: 7\r\ncontent-length"),
        CHUNKED.replace(b": chunked", b": gzip, chunked"),
        STATUS.replace(b"host: host\r\n", b""),
        STATUS.replace(b"host: host", b"host: host\r\nhost: other"),
        STATUS.replace(b" /v1", b" http://other/v1"),
        STATUS.replace(b"host", b"host "),
        b"GET\r\n\r\n",
        b"CONNECT host:80 HTTP/1.1\r\nhost: host\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    ],
    ids=[
        "two_ends",
        "two_lengths",
        "gzip",
        "no_host",
        "two_hosts",
        "other_place",
        "space",
        "no_path",
        "proxy",
        "http2",
        "tls",
    ],
)
async def test_what_is_no_request_is_refused_with_a_sentence(tmp_path, caplog, sent):
    async with running_host(tmp_path, HeldEngine()) as host:
        reader, writer = await connected(tmp_path)
        writer.write(sent)
        answer = await reader.read()
        assert answer.startswith(b"HTTP/1.1 400")
        assert answer.partition(b"\r\n\r\n")[2]
        assert "Traceback" not in caplog.text
        assert await is_served(host)
        writer.close()


class Told:
    """Writes down what it is told."""

    def __init__(self):
        self.events: list[dict[str, Any]] = []
        self.keep_alive: list[bool] = []
        listener: Any = self
        self.parser = RequestParser(listener)

    def on_message_begin(self):
        self.events.append({"headers": [], "body": b"", "is_whole": False})

    def on_url(self, url):
        self.events[-1]["url"] = url

    def on_header(self, name, value):
        self.events[-1]["headers"].append((name, value))

    def on_headers_complete(self):
        self.keep_alive.append(self.parser.should_keep_alive())

    def on_body(self, body):
        self.events[-1]["body"] += body

    def on_message_complete(self):
        self.events[-1]["is_whole"] = True


FIRST = b"POST /a?b=c HTTP/1.1\r\nHost: x\r\nEmpty:\r\nPadded: \t one two \t\r\nContent-Length: 5\r\n\r\nhello"
CHUNKED_HEAD = (
    b"POST /b HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: Chunked\r\n\r\n"
    b"3;name=value\r\nhel\r\n2\r\nlo\r\n0\r\nHost: y\r\nAuthorization: Bearer T\r\n\r\n"
)
UPGRADE = (
    b"POST /c HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n"
    b"HTTP2-Settings: AAA\r\nContent-Length: 5\r\n\r\nhello"
)
CLOSING = b"GET /d HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
ALL = (
    ("/a?b=c", [("host", "x"), ("empty", ""), ("padded", "one two"), ("content-length", "5")], "hello"),
    ("/b", [("host", "x"), ("transfer-encoding", "Chunked")], "hello"),
    ("/c", [("host", "x"), ("content-length", "5")], "hello"),
    ("/d", [("host", "x"), ("connection", "close")], ""),
)  # fmt: skip


@pytest.mark.parametrize("size", [1, 2, 7, 60, 1000])
def test_requests_are_told_whole_without_trailers_and_wishes_for_other_protocols(size):
    told = Told()
    parser = told.parser
    sent = FIRST + CHUNKED_HEAD + UPGRADE + CLOSING
    for start in range(0, len(sent), size):
        parser.feed_data(sent[start : start + size])
    assert not parser.is_in_body
    assert told.keep_alive == [True, True, True, False]
    found = [
        (
            one["url"].decode(),
            [(name.decode(), value.decode()) for name, value in one["headers"]],
            one["body"].decode(),
        )
        for one in told.events
    ]
    assert found == list(ALL)
    assert all(one["is_whole"] for one in told.events)


def test_nothing_is_told_of_a_head_that_is_not_all_there():
    told = Told()
    told.parser.feed_data(FIRST[:40])
    assert told.events == []


def test_a_body_is_awaited_to_its_end():
    parser = Told().parser
    parser.feed_data(FIRST[:-1])
    assert parser.is_in_body


@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        (CLOSING.replace(b"Host: x\r\n", b""), "a request has to have one Host header"),
        (CLOSING.replace(b"Host", b"Host: y\r\nHost"), "a request has to have one Host header"),
        (CLOSING.replace(b"/d", b"http://x/d"), "a request has to name a path"),
        (CHUNKED_HEAD.replace(b"Chunked", b"gzip"), "the only transfer encoding here is chunked"),
        (CHUNKED_HEAD.replace(b"Host", b"Transfer-Encoding: gzip\r\nHost"), "the only transfer encoding here is chunked"),
        (b"CONNECT x:80 HTTP/1.1\r\nHost: x\r\n\r\n", "a request has to name a path"),
        (CLOSING.replace(b"Host", b"X: " + 70_000 * b"x" + b"\r\nHost"), TOO_LONG),
        (UPGRADE.replace(b"Host", 300 * b"X: x\r\n" + b"Host"), TOO_LONG),
        (b"GET / HTTP/1.1\r\nX: " + 70_000 * b"x", TOO_LONG),
    ],
)  # fmt: skip
def test_what_is_refused_has_a_reason_and_is_not_told(sent, reason):
    told = Told()
    parser = told.parser
    with pytest.raises(httptools.HttpParserError):
        parser.feed_data(sent)
    assert parser.refusal == reason
    assert told.events == []


def test_a_request_of_http_1_0_need_not_name_its_host():
    told = Told()
    told.parser.feed_data(b"GET /d HTTP/1.0\r\n\r\n")
    assert [one["url"] for one in told.events] == [b"/d"]
