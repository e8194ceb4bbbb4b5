"""Events leave as they come, end with the client, and an error among them is nobody's secret."""

import asyncio
from typing import Any

import pytest

from engine.host.event_lines import EventLines
from engine.host.protocol import Chunk, Failed

pytestmark = pytest.mark.asyncio

SCOPE: Any = {}  # nobody looks at it
ENDED = Failed("odd", "it ended")


class Client:
    """Takes what is sent to it, and goes when it is told to."""

    def __init__(self) -> None:
        self.sent: list[Any] = []
        self.is_gone = asyncio.Event()

    async def receive(self) -> Any:
        await self.is_gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Any) -> None:
        self.sent.append(message)


async def test_each_event_is_a_line_and_the_last_one_ends_the_answer():
    async def events():
        yield Chunk("one")
        yield ENDED

    client = Client()
    await EventLines(events())(SCOPE, client.receive, client.send)
    start, *bodies = client.sent
    assert (start["status"], start["headers"]) == (
        200,
        [(b"content-type", b"application/x-ndjson")],
    )
    assert [(one["body"].count(b"\n"), one["more_body"]) for one in bodies] == [
        (1, True),
        (1, False),
    ]


async def test_events_end_when_the_client_goes():
    is_closed = []

    async def events():
        try:
            yield Chunk("one")
            await asyncio.Event().wait()
            yield ENDED
        finally:
            is_closed.append(True)

    client = Client()
    answering = asyncio.create_task(EventLines(events())(SCOPE, client.receive, client.send))
    while len(client.sent) < 2:
        await asyncio.sleep(0)
    client.is_gone.set()
    await answering
    assert is_closed


async def test_an_error_among_the_events_is_raised():
    async def events():
        yield Chunk("one")
        raise LookupError("odd")

    client = Client()
    with pytest.raises(LookupError):
        await EventLines(events())(SCOPE, client.receive, client.send)


async def test_who_ends_the_answer_ends_the_events():
    is_closed = []

    async def events():
        try:
            yield Chunk("one")
            await asyncio.Event().wait()
        finally:
            is_closed.append(True)

    client = Client()
    answering = asyncio.create_task(EventLines(events())(SCOPE, client.receive, client.send))
    while len(client.sent) < 2:
        await asyncio.sleep(0)
    answering.cancel()
    with pytest.raises(asyncio.CancelledError):
        await answering
    assert is_closed


async def test_the_head_leaves_at_once():
    """It says that the documents of a request are held, which its client may give up any time."""
    first = asyncio.Event()

    async def events():
        await first.wait()
        yield ENDED

    client = Client()
    answering = asyncio.create_task(EventLines(events())(SCOPE, client.receive, client.send))
    for _ in range(5):
        await asyncio.sleep(0)
    assert [one["type"] for one in client.sent] == ["http.response.start"]
    first.set()
    await answering
    assert [one["type"] for one in client.sent] == ["http.response.start", "http.response.body"]
