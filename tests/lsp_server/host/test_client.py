"""What the editor's side hears from hosts that answer, refuse, vanish, or are none."""

import asyncio
import gzip
import tracemalloc
from contextlib import aclosing, asynccontextmanager, suppress

import msgspec
import pytest

from engine.host import http_client
from engine.host.protocol import (
    BufferSync,
    CloseRequest,
    CompleteEvent,
    Feedback,
    Problem,
    SyncRequest,
)
from engine.request import Chunk, Cost, Done, FinishReason
from lsp_server.host import client as host_client
from lsp_server.host.address import HostAddress
from lsp_server.host.client import (
    HostAbsentError,
    HostClient,
    HostGoneError,
    HostQuotaError,
    HostRefusedError,
    probe,
)
from tests.support.held_engine import HeldEngine
from tests.support.running_host import ask, buffer, listening, running_host

STREAM = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
CHUNK = msgspec.json.encode(Chunk("one ")) + b"\n"


def answer(status: str, body: bytes) -> bytes:
    return b"HTTP/1.1 %b\r\ncontent-length: %d\r\n\r\n%b" % (status.encode(), len(body), body)


def piece(content: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(content), content)


@asynccontextmanager
async def hosted(folder, engine=None, **options):
    """A real host, and our client of it."""
    async with running_host(folder, engine or HeldEngine(), **options) as host:
        yield HostClient(host.client)


@asynccontextmanager
async def saying(*answers: bytes):
    """A client of something that answers each request with the next bytes, and hangs up."""
    rest = list(answers)

    async def answer(reader, writer):
        head = await reader.readuntil(b"\r\n\r\n")
        length = head.lower().partition(b"content-length: ")[2].partition(b"\r")[0]
        await reader.readexactly(int(length or 0))
        writer.write(rest.pop(0))
        await writer.drain()

    async with listening(answer) as address:
        client = HostClient(address.client(20))
        yield client
        await client.close()


async def collected(events):
    """What comes behind the first event, by which the host accepts."""
    async with aclosing(events):
        assert await anext(events) == Chunk("")
        return [event async for event in events]


async def gathered(events, into):
    """Keep what comes before an error, too."""
    async for event in events:
        into.append(event)


@pytest.mark.parametrize(
    "text", ["a\u2028b", "a\u2029b", "a\x85b", "a\x0b\x0c\x1c\r\nb", "é\U0001f600"]
)
async def test_no_sign_within_a_text_ends_an_event(tmp_path, text):
    async with hosted(tmp_path, HeldEngine(words=(text, "\n", text))) as client:
        events = await collected(client.complete(ask(buffer("x"))))
    assert isinstance(events[0], Chunk)
    assert events[0].text == text
    assert events[-1].text == f"{text}\n{text}"


async def test_events_may_arrive_in_any_pieces():
    done = Done("é", FinishReason.END_TOKEN, Cost(1, 1, 1, 1, 0, 0.0, 0.0, {}))
    content = CHUNK + msgspec.json.encode(Chunk("é")) + b"\n" + msgspec.json.encode(done)
    pieces = b"".join(piece(content[at : at + 1]) for at in range(len(content)))
    async with saying(STREAM + pieces + piece(b"")) as client:
        assert await collected(client.complete(ask())) == [Chunk("one "), Chunk("é"), done]


async def test_a_conflict_names_the_buffers_to_send_again(tmp_path):
    stale = BufferSync("file:///b.py", "b.py", "python", 9, base_version=8)
    async with hosted(tmp_path) as client:
        with pytest.raises(HostRefusedError) as completing:
            await collected(client.complete(ask(version=7)))
        with pytest.raises(HostRefusedError) as syncing:
            await client.sync(SyncRequest("one", "/", (buffer("x"), stale)))
    assert completing.value.problem.uris == ("file:///a.py",)
    assert syncing.value.problem.uris == ("file:///b.py",)


async def test_buffers_and_status_go_their_way(tmp_path):
    async with hosted(tmp_path) as client:
        await client.sync(SyncRequest("one", "/", (buffer("x"),)))
        assert (await client.status()).num_buffers == 1
        await client.close_buffers(CloseRequest("one"))
        status = await client.status()
        assert (status.num_buffers, status.num_clients) == (0, 0)


async def test_feedback_is_counted_though_the_host_has_to_be_brought_up_to_date_first(tmp_path):
    stale = BufferSync("file:///b.py", "b.py", "python", 9, base_version=8)
    async with hosted(tmp_path) as client:
        done = (await collected(client.complete(ask(buffer("x")))))[-1]
        told = (Feedback("", "nothing", "shown"), Feedback("", done.id, "accepted"))
        request = msgspec.structs.replace(ask(stale), feedback=told)
        with pytest.raises(HostRefusedError):
            await collected(client.complete(request))
        page = (await client._http.get("/metrics")).text
    assert 'foregram_feedback_total{kind="accepted"} 1.0' in page
    assert 'kind="shown"' not in page


async def test_who_stops_listening_ends_the_work(tmp_path):
    engine = HeldEngine(is_held=True)
    async with hosted(tmp_path, engine) as client:
        engine.permits.release()
        async with aclosing(client.complete(ask(buffer("x")))) as events:
            assert [(await anext(events)).text for _ in range(2)] == ["", "one "]
        while not engine.ended:
            await asyncio.sleep(0.001)
    assert engine.ended == [FinishReason.CANCELLED]


async def test_a_host_that_is_not_there_is_gone(tmp_path):
    client = HostClient(HostAddress("", tmp_path / "none").client(), "there")
    for asking in (client.status(), collected(client.complete(ask()))):
        with pytest.raises(HostAbsentError, match="no completion host listens on there"):
            await asking
    await client.close()


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (STREAM + piece(CHUNK), "RemoteProtocolError"),  # the connection breaks
        (STREAM + piece(CHUNK + CHUNK[:7]), "RemoteProtocolError"),
        (STREAM + piece(CHUNK) + piece(b'{"type":"news"}\n') + piece(b""), "news"),
        (STREAM + piece(CHUNK) + piece(b"\xff\n") + piece(b""), "DecodeError"),
        (STREAM + piece(CHUNK) + piece(CHUNK.replace(b"one", b"\xff")) + piece(b""), "(?i)utf-8"),
        (STREAM + piece(CHUNK) + piece(b"[" * 90_000 + b"\n") + piece(b""), "stopped answering"),
        (STREAM + piece(CHUNK) + piece(CHUNK[:-4]) + piece(b""), "truncated"),
        (STREAM + piece(CHUNK) + piece(b""), "in the middle"),  # whole, but for its end
    ],
)
async def test_a_stream_that_does_not_end_as_it_should_is_a_host_gone(said, reason):
    events: list[CompleteEvent] = []
    async with saying(said) as client:
        with pytest.raises(HostGoneError, match=reason):
            await gathered(client.complete(ask()), events)
    assert events == [Chunk(""), Chunk("one ")]


@pytest.mark.parametrize("silence", [b"", b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{"])
async def test_a_host_that_hangs_up_before_its_answer_is_gone(silence):
    async with saying(silence, silence) as client:
        with pytest.raises(HostGoneError):
            await client.status()
        with pytest.raises(HostGoneError):
            await collected(client.complete(ask()))


@pytest.mark.parametrize(
    "said",
    [
        answer("200 OK", b"<html>hello</html>"),
        answer("200 OK", b'{"protocol": 1}'),
        answer("200 OK", b'{"mood": "good"}'),
        answer("404 Not Found", b"<html>no</html>"),
        answer("409 Conflict", b'{"uris": 7}'),
        answer("502 Bad Gateway", b""),
        answer("301 Moved", b'["elsewhere"]'),
        answer("301 Moved\r\nlocation: http://127.0.0.1:9/", b""),
        answer("200 OK", b'{"version": "\xff"}'),
        answer("500 Odd", b"[" * 200_000),
    ],
)
async def test_what_answers_otherwise_is_no_host(said):
    async with saying(said) as client:
        with pytest.raises(HostRefusedError, match="is no completion host") as refusal:
            await client.status()
    assert refusal.value.problem.code == "no_host"


async def test_a_proxy_that_has_no_host_behind_it_is_asked_again():
    async with saying(answer("502 Bad Gateway", b"<html>no</html>")) as client:
        with pytest.raises(HostAbsentError, match="answers 502"):
            await collected(client.complete(ask()))


async def test_a_completion_of_what_is_no_host_is_refused():
    said = answer("404 Not Found", b"<html>no</html>")
    async with saying(said) as client:
        with pytest.raises(HostRefusedError) as refusal:
            await collected(client.complete(ask()))
    assert refusal.value.problem == Problem("no_host", "what answers is no completion host (404)")


async def test_what_a_host_tells_people_is_short_and_obeyed_by_no_terminal():
    problem = Problem("odd", "\x1b]0;title\x07" + "a" * 100_000)
    async with saying(answer("400 Bad", msgspec.json.encode(problem))) as client:
        with pytest.raises(HostRefusedError) as refusal:
            await client.status()
    assert str(refusal.value).isprintable()
    assert len(str(refusal.value)) == 500


async def told(said):
    """How the client ends that listens to `said`."""

    async def answer(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\n" + said)
        await writer.drain()

    async with listening(answer) as address:
        client = HostClient(address.client(20))
        with pytest.raises(HostGoneError) as completing:
            await collected(client.complete(ask(buffer("x"))))
        with pytest.raises((HostGoneError, HostRefusedError)) as asking:
            await client.status()
        await client.close()
        assert (await probe(address)).kind in ("silent", "refused")
    return f"{completing.value} {asking.value}"


async def test_an_answer_without_an_end_is_not_read_to_it(monkeypatch):
    monkeypatch.setattr(http_client, "MAX_BODY_BYTES", 100_000)
    reasons = await told(b"\r\n" + b'{"type":"chunk","text":""}\n' * 100_000)
    assert reasons.count("a response of more than 100,000 bytes") == 2


async def test_a_host_that_drips_is_silent_after_a_while(monkeypatch):
    """Each byte came in time, so that `status` and `doctor` waited for ever."""
    monkeypatch.setattr(host_client, "_ANSWER_S", 0.3)

    async def drip(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 9000\r\n\r\n")
        while not reader.at_eof():
            writer.write(b"{")
            with suppress(TimeoutError):
                await asyncio.wait_for(reader.read(1), 0.01)

    async with listening(drip) as address, asyncio.timeout(10):
        assert (await probe(address)).kind == "still"


async def test_halves_of_surrogate_pairs_are_replaced_wherever_they_stand(tmp_path):
    half = "\ud83d"
    async with hosted(tmp_path) as client:
        request = msgspec.structs.replace(ask(buffer(f"x{half}")), workspace=f"file:///{half}")
        feedback = (Feedback("", half, "shown"),)
        request = msgspec.structs.replace(request, feedback=feedback)
        assert isinstance((await collected(client.complete(request)))[-1], Done)


async def test_a_line_without_an_end_is_not_read_to_it(monkeypatch):
    monkeypatch.setattr(http_client, "MAX_LINE_BYTES", 100_000)
    assert "a line of more than 100,000 bytes" in await told(b"\r\n" + b" " * 1_000_000)


async def test_what_nobody_asked_to_compress_is_not_unpacked():
    """A few kilobytes of it could be all of the memory."""
    bomb = gzip.compress(CHUNK + b" " * 50_000_000)
    tracemalloc.start()
    await told(b"content-encoding: gzip\r\n\r\n" + bomb)
    assert tracemalloc.get_traced_memory()[1] < 20_000_000
    tracemalloc.stop()


WAITING = b'{"code":"quota","message":"too many"}'


def told_to_wait(header: bytes) -> bytes:
    head = b"HTTP/1.1 429 Too Many Requests\r\nretry-after: %b\r\nconnection: close\r\n" % header
    return head + b"content-length: %d\r\n\r\n%b" % (len(WAITING), WAITING)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [(b"7", 7), (b"0", 1), (b"86400", 60), (b"Wed, 21 Oct 2026 07:28:00 GMT", 1), (b"-3", 1)],
)
async def test_whoever_is_told_to_wait_sends_nothing_more_until_then(monkeypatch, header, seconds):
    now = 100.0
    monkeypatch.setattr("lsp_server.host.client.time.monotonic", lambda: now)
    async with saying(told_to_wait(header), STREAM + piece(CHUNK)) as client:
        with pytest.raises(HostQuotaError, match="too many") as error:
            await collected(client.complete(ask()))
        assert error.value.retry_after_s == seconds
        now += seconds - 0.5
        with pytest.raises(HostQuotaError, match="too many") as error:
            await client.sync(SyncRequest("one", "/", ()))
        assert error.value.retry_after_s == 0.5
        now += 1.0
        with pytest.raises(HostGoneError):  # it was sent: the answer breaks off
            await collected(client.complete(ask()))


async def test_what_gives_back_is_sent_even_where_the_host_told_to_wait():
    done = b"HTTP/1.1 204 No Content\r\n\r\n"
    async with saying(told_to_wait(b"60"), done) as client:
        with pytest.raises(HostQuotaError):
            await client.sync(SyncRequest("one", "/", ()))
        await client.close_buffers(CloseRequest("one"))
