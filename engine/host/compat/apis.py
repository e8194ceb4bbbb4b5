"""The routes of drop-in APIs. Streams: html.spec.whatwg.org/multipage/server-sent-events.html."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec
from litestar import Request, Response, post, route
from litestar.exceptions import HTTPException
from litestar.handlers import HTTPRouteHandler
from litestar.response import Stream

from engine.errors import ConfigurationError, InputError
from engine.host.bodies import decoded, unless_gone
from engine.host.compat.drop_in_api import Body, DropInApi, DropInCompletion, Json, event
from engine.host.compat.llama_cpp import LLAMA_CPP
from engine.host.compat.openai import MISTRAL, OPENAI
from engine.host.compat.tabby import TABBY
from engine.host.failures import RefusalError
from engine.host.principals import principal_of
from engine.host.protocol import CompleteEvent, Failed, Problem
from engine.host.service import CompletionService
from engine.request import Chunk, Done, TokenText

NONE = "none"
_ALL = (OPENAI, MISTRAL, LLAMA_CPP, TABBY)
NAMES = tuple(one.name for one in _ALL)
DEFAULT = "openai"
AnyRequest = Request[Any, Any, Any]

_HEALTH = "/v1/health"  # common to all drop-in APIs
_API = "api"  # key in a request's state for the API that its body is for
_LARGEST = 2**53  # up to here, a float can be any whole number
_KEEP_ALIVE_S = 15.0  # seconds of silence before a stream's head or a keep-alive is sent
_STATUSES = {
    "bad_input": 400,
    "bad_configuration": 400,
    "prompt_too_long": 400,
    "upstream_refused": 400,
    "wrong_token": 401,
    "superseded": 409,
    "model_unsupported": 501,
    "no_chat_template": 501,
    "no_space": 503,
    "stopping": 503,
    "stopped": 503,
    "upstream_busy": 503,
    "upstream_timeout": 504,
}
_HEADERS = {"cache-control": "no-cache", "x-accel-buffering": "no"}  # proxies must not hold events
_T = TypeVar("_T")
_Said = TypeVar("_Said", Chunk, Done, TokenText)


@dataclass(frozen=True, slots=True)
class EnabledApis:
    """The drop-in APIs that a host has enabled."""

    apis: tuple[DropInApi, ...] = ()

    @classmethod
    def named(cls, names: str) -> "EnabledApis":
        """Parse names separated by commas, or `none`. Raises ConfigurationError."""
        wanted = [] if names == NONE else [name.strip() for name in names.split(",")]
        unknown = [name for name in wanted if name not in NAMES]
        if unknown:
            raise ConfigurationError(
                f"there is no API {unknown[0]!r}: name some of {', '.join(NAMES)}, or {NONE}"
            )
        return cls(tuple(one for one in _ALL if one.name in wanted))

    def at(self, path: str) -> DropInApi | None:
        """Return the API of a path, preferably an enabled one; None for the native API."""
        every = (*self.apis, *_ALL)
        return next((one for one in every if one.has(path) or path == _HEALTH), None)

    def off(self, api: DropInApi) -> str:
        """Return how to enable a disabled API in addition; "" if it is enabled."""
        if api in self.apis:
            return ""
        names = ",".join(one.name for one in _ALL if one in (*self.apis, api))
        return f"{api.name} is switched off here: start the host with --api {names}"

    def meant(self, path: str, body: Body) -> DropInApi:
        """Return the API that a body is for. Raises InputError if it is ambiguous or disabled."""
        at_path = [one for one in self.apis if path in one.paths]
        found = [one for one in _ALL if path in one.paths and one.marker in body]
        enabled = [one for one in found if one in at_path]
        if found and not enabled:
            raise InputError(
                f"a body with `{found[0].marker}` is for another API: {self.off(found[0])}"
            )
        if len(at_path) == 1 or len(enabled) == 1:
            return (enabled or at_path)[0]
        ways = ", or ".join(f"`{one.marker}` ({one.name})" for one in at_path)
        told = "and not several of them" if enabled else "and it has none of them"
        raise InputError(f"a body here has {ways}, {told}")


def drop_in_routes(service: CompletionService, enabled: EnabledApis) -> list[HTTPRouteHandler]:
    """Return the routes of all enabled APIs."""
    paths = dict.fromkeys(path for api in enabled.apis for path in api.paths)
    routes = [_completing(service, path, enabled) for path in paths]
    routes += [one for api in enabled.apis for one in api.routes(service)]
    return [*routes, _health(service, enabled)] if routes else []


def _completing(service: CompletionService, path: str, enabled: EnabledApis) -> HTTPRouteHandler:
    @post(path, status_code=200)
    async def complete(request: AnyRequest) -> Response[Any]:
        body = _plain(decoded(await request.body(), dict[str, Any]))
        api = request.state[_API] = enabled.meant(path, body)
        completion = api.read(path, body, service.engine_thread.ready_engine().info)
        events = completion.request.events(service, principal_of(request.scope))
        if completion.request.has_crlf:
            events = _with_crlf(events)
        if not completion.is_streamed:
            return Response(await _unless_gone(request, _whole(events, completion)))
        sent = _sent(events, api, completion)
        await _unless_gone(request, anext(sent))
        return Stream(sent, media_type="text/event-stream", headers=_HEADERS)

    return complete


def _plain(body: Body) -> Body:
    return {
        name: int(value)
        if isinstance(value, float) and value.is_integer() and abs(value) < _LARGEST
        else value
        for name, value in body.items()
        if value is not None
    }


def _health(service: CompletionService, enabled: EnabledApis) -> HTTPRouteHandler:
    @route(_HEALTH, http_method=["GET", "POST"], status_code=200)
    async def health() -> Response[Json]:
        if service.state != "ready":
            return Response({"status": service.state}, status_code=503)
        model = service.engine_thread.ready_engine().info
        said: Json = {"status": "ok", "model": model.model}
        for api in enabled.apis:
            said |= api.health(model)
        return Response(said, status_code=200)

    return health


def refused(request: AnyRequest, refusal: RefusalError, enabled: EnabledApis) -> Response[Any]:
    """Return the answer to a refused request, in the form of its API."""
    api = request.state.get(_API) or enabled.at(request.url.path)
    content, status, headers = refusal.problem, refusal.status, refusal.headers
    if status == 405:
        methods = request.app.route_handler_method_map.get(request.url.path, ())
        headers["Allow"] = ", ".join(sorted(methods))
    if api is None:
        return Response(content, status_code=status, headers=headers)
    if refusal.problem.code == "model_unsupported":
        status = _STATUSES[refusal.problem.code]
    return Response(api.refusal(status, refusal.problem), status_code=status, headers=headers)


async def _whole(events: AsyncGenerator[CompleteEvent], completion: DropInCompletion) -> object:
    async with aclosing(events):
        told: list[Any] = [one async for one in events]
    if isinstance(told[-1], Failed):
        raise _refusal(told[-1])
    return completion.answer(told[:-1], told[-1])


async def _sent(
    events: AsyncGenerator[CompleteEvent], api: DropInApi, completion: DropInCompletion
) -> AsyncGenerator[bytes]:
    """Yield nothing once the status is known, then the bytes of a stream. Raises RefusalError."""
    pending = asyncio.ensure_future(anext(events))
    try:
        await asyncio.wait({pending}, timeout=_KEEP_ALIVE_S)
        if pending.done() and isinstance(failed := pending.result(), Failed):
            raise _refusal(failed)
        yield b""
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
        if not pending.cancel():  # cancelling a pending step closes `events`
            await events.aclose()


def _refusal(failed: Failed) -> RefusalError:
    otherwise = 502 if failed.code.startswith("upstream_") else 500
    status = _STATUSES.get(failed.code, otherwise)
    return RefusalError(status, Problem(failed.code, failed.message), failed.retry_after_s)


async def _unless_gone(request: AnyRequest, work: Awaitable[_T]) -> _T:
    if (done := await unless_gone(request.receive, work)) is None:
        raise HTTPException(status_code=499, detail="the client is gone")  # nginx's status
    return done


async def _with_crlf(events: AsyncGenerator[CompleteEvent]) -> AsyncGenerator[CompleteEvent]:
    async with aclosing(events):
        async for told in events:
            if isinstance(told, Chunk):
                tokens = tuple(map(_replaced, told.tokens))
                yield msgspec.structs.replace(_replaced(told), tokens=tokens)
            else:
                yield told if isinstance(told, Failed) else _replaced(told)


def _replaced(said: _Said) -> _Said:
    return msgspec.structs.replace(said, text=said.text.replace("\n", "\r\n"))
