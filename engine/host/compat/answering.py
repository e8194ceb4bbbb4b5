"""From a request to its answer: the service's events, as a whole or as a stream of frames.

Who stops listening cancels the completion, also while it waits or its prompt is read.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable
from contextlib import aclosing, suppress
from typing import Any, TypeVar

import msgspec
from litestar import Request, Response
from litestar.exceptions import HTTPException
from litestar.response import Stream

from engine.host.bodies import until_gone
from engine.host.compat.dialect import KEEP_ALIVE, Dialect, Exchange, data
from engine.host.failures import RefusalError
from engine.host.principals import principal_of
from engine.host.protocol import CompleteEvent, Done, Failed, Problem
from engine.host.service import CompletionService
from engine.request import Chunk

_KEEP_ALIVE_S = 15.0
_CLIENT_GONE = 499  # nginx's: nobody reads the answer
_STATUSES = {
    "bad_input": 400,
    "bad_configuration": 400,
    "upstream_refused": 400,
    "wrong_token": 401,
    "superseded": 409,
    "model_unsupported": 501,
    "no_space": 503,
    "stopping": 503,
    "stopped": 503,
    "upstream_busy": 503,
    "upstream_timeout": 504,
}
_OF_UPSTREAM, _BAD_GATEWAY = "upstream_", 502
_HEADERS = {"cache-control": "no-cache", "x-accel-buffering": "no"}  # proxies are to pass chunks on
_T = TypeVar("_T")


class FailedError(RefusalError):
    """A completion that failed before anything of it was sent."""

    def __init__(self, failed: Failed) -> None:
        otherwise = _BAD_GATEWAY if failed.code.startswith(_OF_UPSTREAM) else 500
        status = _STATUSES.get(failed.code, otherwise)
        super().__init__(status, Problem(failed.code, failed.message), failed.retry_after_s)


async def answered(
    request: Request[Any, Any, Any],
    service: CompletionService,
    dialect: Dialect,
    exchange: Exchange,
) -> Response[Any]:
    """Complete. Raises FailedError, and what a job raises."""
    events = exchange.request.job(service, principal_of(request.scope)).events()
    if exchange.request.has_crlf:
        events = _with_crlf(events)
    if not exchange.is_streamed:
        return Response(await _unless_gone(request, _whole(events, exchange)), status_code=200)
    first = asyncio.ensure_future(anext(events))
    try:
        await _unless_gone(request, asyncio.wait({first}, timeout=_KEEP_ALIVE_S))
    except BaseException:
        first.cancel()
        raise
    if first.done() and isinstance(event := first.result(), Failed):
        raise FailedError(event)
    frames = _frames(events, first, dialect, exchange)
    return Stream(frames, media_type="text/event-stream", headers=_HEADERS)


async def _whole(events: AsyncGenerator[CompleteEvent], exchange: Exchange) -> object:
    chunks: list[Chunk] = []
    async with aclosing(events):
        async for event in events:
            if isinstance(event, Failed):
                raise FailedError(event)
            if isinstance(event, Done):
                return exchange.whole(chunks, event)
            chunks.append(event)
    raise FailedError(Failed("internal_error", "the completion has no end"))


async def _frames(
    events: AsyncGenerator[CompleteEvent],
    first: asyncio.Task[CompleteEvent],
    dialect: Dialect,
    exchange: Exchange,
) -> AsyncIterator[bytes]:
    """The frames of a stream whose `first` event is awaited already."""
    pending = first
    try:
        while True:
            if not (await asyncio.wait({pending}, timeout=_KEEP_ALIVE_S))[0]:
                yield KEEP_ALIVE
                continue
            event = pending.result()
            if frame := _frame(event, dialect, exchange):
                yield frame
            if not isinstance(event, Chunk):
                return
            pending = asyncio.ensure_future(anext(events))
    finally:
        if not pending.cancel():  # else its end is that of the events
            await events.aclose()


def _frame(event: CompleteEvent, dialect: Dialect, exchange: Exchange) -> bytes:
    if isinstance(event, Chunk):
        return exchange.frame(event)
    if isinstance(event, Done):
        return exchange.last_frames(event)
    error = FailedError(event)
    return data(dialect.refusal(error.status, error.problem))


async def _unless_gone(request: Request[Any, Any, Any], work: Awaitable[_T]) -> _T:
    """Await `work`; where the client goes away meanwhile, cancel it and raise HTTPException."""
    working, gone = asyncio.ensure_future(work), asyncio.ensure_future(until_gone(request.receive))
    try:
        await asyncio.wait({working, gone}, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return working.result()
        raise HTTPException(status_code=_CLIENT_GONE, detail="the client is gone")
    finally:
        for one in (working, gone):
            one.cancel()
        with suppress(Exception, asyncio.CancelledError):
            await working
        # An error knows this frame, and through the tasks it would know itself: with the request's
        # body, which may be large, until a collector of cycles comes by.
        del working, gone


async def _with_crlf(events: AsyncGenerator[CompleteEvent]) -> AsyncGenerator[CompleteEvent]:
    """The events with the line ends of the client's file."""
    async with aclosing(events):
        async for event in events:
            yield _as_crlf(event)


def _as_crlf(event: CompleteEvent) -> CompleteEvent:
    if isinstance(event, Failed):
        return event
    changed: dict[str, Any] = {"text": event.text.replace("\n", "\r\n")}
    if isinstance(event, Chunk):
        changed["tokens"] = tuple(
            msgspec.structs.replace(one, text=one.text.replace("\n", "\r\n"))
            for one in event.tokens
        )
    return msgspec.structs.replace(event, **changed)
