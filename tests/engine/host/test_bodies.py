"""Bodies as clients write them, halves of characters included."""

import asyncio
from typing import Any

import pytest

from engine.errors import InputError
from engine.host.bodies import EventLines, decoded
from engine.host.compat.apis import NAMES
from engine.host.protocol import Failed
from engine.request import Chunk
from tests.support.held_engine import HeldEngine
from tests.support.running_host import running_host


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (rb'"\ude00 x = "', "\ufffd x = "),
        (rb'"x = \ud83d"', "x = \ufffd"),
        (rb'"\uD83D\uDE00"', "\U0001f600"),
        (rb'"\ud83d\ud83d\ude00"', "\ufffd\U0001f600"),
        (rb'"\ude00\ud83d"', "\ufffd\ufffd"),
        (rb'"\ud83d\u0041"', "\ufffdA"),
        (rb'"\\ud83d"', r"\ud83d"),
        (rb'"\\\ud83d"', "\\\ufffd"),
        (b'"\xed\xa0\xbd x"', "\ufffd x"),
    ],
)
def test_half_a_surrogate_pair_is_replaced_and_nothing_else(body, text):
    assert decoded(body, str) == text


@pytest.mark.parametrize("body", [rb'"\ud8"', rb'"\ud83d', b'"\xff"', rb'{"a": "\ud83d"}', b""])
def test_what_is_wrong_besides_is_refused(body):
    with pytest.raises(InputError):
        decoded(body, str)


async def test_every_api_takes_a_prompt_that_was_cut_within_a_character(tmp_path):
    """Clients in JavaScript cut their windows by UTF-16 units."""
    bodies = {
        "/v1/completions": [b'{"prompt": "%b"}', b'{"segments": {"prefix": "%b"}}'],
        "/v1/fim/completions": [b'{"prompt": "%b"}'],
        "/infill": [b'{"input_prefix": "%b", "input_suffix": "%b"}'],
    }
    async with running_host(tmp_path, HeldEngine(), apis=",".join(NAMES)) as host:
        for path, shapes in bodies.items():
            for shape in shapes:
                content = shape.replace(b"%b", rb"\ude00 x = ")
                answer = await host.client.post(path, content=content)
                assert answer.status_code == 200, (path, answer.text)


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

    async def is_sent(self, events: Any) -> None:
        scope: Any = {}  # nobody looks at it
        await EventLines(events)(scope, self.receive, self.send)


async def test_each_event_is_a_line_and_the_last_one_ends_the_answer():
    async def events():
        yield Chunk("one")
        yield ENDED

    client = Client()
    await client.is_sent(events())
    start, *bodies = client.sent
    assert (start["status"], start["headers"]) == (
        200,
        [(b"content-type", b"application/x-ndjson")],
    )
    assert [(one["body"].count(b"\n"), one["more_body"]) for one in bodies] == [
        (1, True),
        (1, False),
    ]


@pytest.mark.parametrize("goes", [True, False], ids=["the client goes", "the answer is ended"])
async def test_events_end_with_their_answer(goes):
    is_closed = []

    async def events():
        try:
            yield Chunk("one")
            await asyncio.Event().wait()
            yield ENDED
        finally:
            is_closed.append(True)

    client = Client()
    answering = asyncio.create_task(client.is_sent(events()))
    while len(client.sent) < 2:
        await asyncio.sleep(0)
    if goes:
        client.is_gone.set()
        await answering
    else:
        answering.cancel()
        with pytest.raises(asyncio.CancelledError):
            await answering
    assert is_closed


async def test_an_error_among_the_events_is_raised():
    async def events():
        yield Chunk("one")
        raise LookupError("odd")

    client = Client()
    with pytest.raises(LookupError):
        await client.is_sent(events())


async def test_the_head_leaves_at_once():
    """It says that the documents of a request are held, which its client may give up any time."""
    first = asyncio.Event()

    async def events():
        await first.wait()
        yield ENDED

    client = Client()
    answering = asyncio.create_task(client.is_sent(events()))
    for _ in range(5):
        await asyncio.sleep(0)
    assert [one["type"] for one in client.sent] == ["http.response.start"]
    first.set()
    await answering
    assert [one["type"] for one in client.sent] == ["http.response.start", "http.response.body"]
