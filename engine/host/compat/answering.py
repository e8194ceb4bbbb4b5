"""From a request to its answer: the service's events, as a whole or as server-sent events.

A client that stops listening cancels the completion, also while it waits or its prompt is read.
https://html.spec.whatwg.org/multipage/server-sent-events.html
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine
from contextlib import aclosing
from typing import Any, TypeVar

import msgspec
from litestar import Request, Response
from litestar.exceptions import HTTPException
from litestar.response import Stream

from engine.host.bodies import unless_gone
from engine.host.compat.drop_in_api import DropInApi, DropInCompletion, event
from engine.host.failures import RefusalError
from engine.host.principals import principal_of
from engine.host.protocol import CompleteEvent, Done, Failed, Problem
from engine.host.service import CompletionService
from engine.request import Chunk, TokenText

_KEEP_ALIVE_S = 15.0
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
_HEADERS = {"cache-control": "no-cache", "x-accel-buffering": "no"}  # proxies pass events on
_T = TypeVar("_T")
_Said = TypeVar("_Said", Chunk, Done, TokenText)


async def answered(
    request: Request[Any, Any, Any],
    service: CompletionService,
    api: DropInApi,
    completion: DropInCompletion,
) -> Response[Any]:
    """Complete. Raises RefusalError, and what a job raises."""
    events = completion.request.events(service, principal_of(request.scope))
    if completion.request.has_crlf:
        events = _with_crlf(events)
    if not completion.is_streamed:
        return Response(await _unless_gone(request, _whole(events, completion)), status_code=200)
    first = asyncio.ensure_future(anext(events))
    try:
        await _unless_gone(request, asyncio.wait({first}, timeout=_KEEP_ALIVE_S))
    except BaseException:
        first.cancel()
        raise
    if first.done() and isinstance(failed := first.result(), Failed):
        raise _refusal(failed)
    sent = _sent(events, first, api, completion)
    return Stream(sent, media_type="text/event-stream", headers=_HEADERS)


async def _whole(events: AsyncGenerator[CompleteEvent], completion: DropInCompletion) -> object:
    chunks: list[Chunk] = []
    async with aclosing(events):
        async for told in events:
            if isinstance(told, Failed):
                raise _refusal(told)
            if isinstance(told, Done):
                return completion.answer(chunks, told)
            chunks.append(told)
    raise AssertionError("the completion has no end")


async def _sent(
    events: AsyncGenerator[CompleteEvent],
    first: asyncio.Task[CompleteEvent],
    api: DropInApi,
    completion: DropInCompletion,
) -> AsyncIterator[bytes]:
    """What is sent of a stream whose `first` event is awaited already."""
    pending = first
    try:
        while True:
            if not (await asyncio.wait({pending}, timeout=_KEEP_ALIVE_S))[0]:
                yield b": keep-alive\n\n"
                continue
            told = pending.result()
            if isinstance(told, Done):
                yield completion.end(told)
                return
            if isinstance(told, Failed):
                error = _refusal(told)
                yield event(api.refusal(error.status, error.problem))
                return
            yield completion.piece(told)
            pending = asyncio.ensure_future(anext(events))
    finally:
        if not pending.cancel():  # else its end is that of the events
            await events.aclose()


def _refusal(failed: Failed) -> RefusalError:
    """A completion that failed before anything of it was sent."""
    otherwise = 502 if failed.code.startswith("upstream_") else 500
    status = _STATUSES.get(failed.code, otherwise)
    return RefusalError(status, Problem(failed.code, failed.message), failed.retry_after_s)


async def _unless_gone(request: Request[Any, Any, Any], work: Coroutine[Any, Any, _T]) -> _T:
    if (done := await unless_gone(request.receive, work)) is None:
        raise HTTPException(status_code=499, detail="the client is gone")  # nginx's status
    return done


async def _with_crlf(events: AsyncGenerator[CompleteEvent]) -> AsyncGenerator[CompleteEvent]:
    """The events with the line ends of the client's file."""
    async with aclosing(events):
        async for told in events:
            if isinstance(told, Chunk):
                tokens = tuple(map(_replaced, told.tokens))
                yield msgspec.structs.replace(_replaced(told), tokens=tokens)
            else:
                yield told if isinstance(told, Failed) else _replaced(told)


def _replaced(said: _Said) -> _Said:
    return msgspec.structs.replace(said, text=said.text.replace("\n", "\r\n"))
