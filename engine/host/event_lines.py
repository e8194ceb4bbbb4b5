"""A completion's events on their way to the client: lines of JSON, until one of both goes."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass

import msgspec
from litestar.types import HTTPResponseBodyEvent, HTTPResponseStartEvent, Receive, Scope, Send

from engine.host.protocol import Chunk, CompleteEvent

_START: HTTPResponseStartEvent = {
    "type": "http.response.start",
    "status": 200,
    "headers": [(b"content-type", b"application/x-ndjson")],
}
_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class EventLines:
    """An answer as ASGI has it. When the client goes, the events end within a step.

    In place of litestar's own stream, whose groups of tasks take twice the time: 0.09 ms an answer.
    """

    events: AsyncGenerator[CompleteEvent]

    async def __call__(self, _scope: Scope, receive: Receive, send: Send) -> None:
        """Write the head, which says that the request was taken, and each event as it comes."""
        tasks = (asyncio.create_task(self._write(send)), asyncio.create_task(until_gone(receive)))
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()  # one that is done does not mind
            ended = await asyncio.gather(*tasks, return_exceptions=True)
        for error in ended:
            if isinstance(error, Exception):
                raise error

    async def _write(self, send: Send) -> None:
        async with aclosing(self.events):
            await send(_START)
            async for event in self.events:
                line: HTTPResponseBodyEvent = {
                    "type": "http.response.body",
                    "body": _encode(event) + b"\n",
                    "more_body": isinstance(event, Chunk),
                }
                await send(line)


async def until_gone(receive: Receive) -> None:
    """Return once the client is gone."""
    while (await receive())["type"] != "http.disconnect":
        pass
