"""The host's HTTP routes, which `engine.host.protocol` describes."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, TypeVar

import msgspec
from litestar import Litestar, MediaType, Response, get, post, route
from litestar.exceptions import HTTPException, PermissionDeniedException
from litestar.params import FromQuery

from engine.errors import ConfigurationError, InputError, UnsupportedModelError
from engine.host.auth import AuthMiddleware
from engine.host.bodies import EventLines, decoded
from engine.host.buffers import ClientId
from engine.host.compat.apis import AnyRequest, EnabledApis, drop_in_routes, refused
from engine.host.failures import RefusalError, log_failure
from engine.host.metrics import joined_pages
from engine.host.principals import METRICS_NAME, Principals, principal_of
from engine.host.protocol import (
    MAX_BODY_BYTES,
    CloseRequest,
    CompleteRequest,
    Feedback,
    Problem,
    Status,
    SyncRequest,
)
from engine.host.service import CompletionService

_Kind = TypeVar("_Kind", bound=msgspec.Struct)
AskAll = Callable[..., Awaitable[list[Any]]]  # asks each host behind this address; never raises
_CODES = {
    400: "bad_request",
    404: "not_found",
    405: "wrong_method",
    413: "too_large",
    403: "not_allowed",
}


async def _ask_none(*_: object) -> list[Any]:
    return []


async def _message(service: CompletionService, request: AnyRequest, kind: type[_Kind]) -> _Kind:
    service.used_at = time.monotonic()
    return decoded(await request.body(), kind)


def guarded_app(
    service: CompletionService,
    apis: EnabledApis,
    principals: Principals,
    *,
    is_loopback: bool,
    stop: Callable[[], None] | None = None,
    ask_all: AskAll = _ask_none,
    replica: str = "",
) -> AuthMiddleware:
    """Build the application, with authentication in front. Without `stop`, no client may end it."""
    began = time.monotonic()

    @post("/v1/complete", status_code=200)
    async def complete(request: AnyRequest) -> EventLines:
        message = await _message(service, request, CompleteRequest)
        return EventLines(service.complete(principal_of(request.scope), message))

    @post("/v1/buffers", status_code=204)
    async def sync(request: AnyRequest) -> None:
        data = await _message(service, request, SyncRequest)
        client = ClientId(principal_of(request.scope), data.client)
        service.buffers.sync(client, data.workspace, data.buffers)

    @post("/v1/buffers/close", status_code=204)
    async def close(request: AnyRequest) -> None:
        data = await _message(service, request, CloseRequest)
        client = ClientId(principal_of(request.scope), data.client)
        service.clients.leave(client, data.uris)
        await ask_all("close_client", *client, data.uris)  # another replica may hold them

    @post("/v1/feedback", status_code=204)
    async def feedback(request: AnyRequest) -> None:
        data = await _message(service, request, Feedback)
        if not service.clients.record(principal_of(request.scope), data):
            told = f"there is no completion {data.completion_id}"
            raise RefusalError(404, Problem("unknown_completion", told))

    @get("/v1/status")
    async def status(request: AnyRequest, client: FromQuery[str] = "") -> Status:
        asking = ClientId(principal_of(request.scope), client)
        return service.status(time.monotonic() - began, asking)

    @post("/v1/stop", status_code=202)
    async def stop_host(request: AnyRequest) -> None:
        asyncio.get_running_loop().call_soon(_allowed(stop, request))

    @route("/health", http_method=["GET", "HEAD"], status_code=200)
    async def health() -> Response[dict[str, str]]:
        status = "ok" if service.state == "ready" else service.state
        return Response({"status": status}, status_code=200 if status == "ok" else 503)

    @get("/metrics", media_type=MediaType.TEXT)
    async def metrics(request: AnyRequest) -> bytes:
        _check_sees_all(request)
        own = {replica: service.metrics.page(service.gauges())}
        return joined_pages(dict(await ask_all("metrics")) | own) if replica else own[replica]

    native = [complete, sync, close, feedback, status, stop_host, health, metrics]
    app: Any = Litestar(  # its types are narrower than ASGI's
        route_handlers=[*native, *drop_in_routes(service, apis)],
        exception_handlers={Exception: partial(_on_error, service, apis)},
        request_max_body_size=MAX_BODY_BYTES,
        openapi_config=None,
        logging_config=None,
    )
    return AuthMiddleware(
        app, principals, is_loopback, service.limits, apis, service.metrics, replica=replica
    )


def _allowed(stop: Callable[[], None] | None, request: AnyRequest) -> Callable[[], None]:
    if stop is None:
        raise PermissionDeniedException(
            "only a host on a Unix socket is stopped by a request; end this one's process"
        )
    if principal_of(request.scope):
        raise PermissionDeniedException("a host of several people is stopped by none of them")
    return stop


def _check_sees_all(request: AnyRequest) -> None:
    if principal_of(request.scope) not in ("", METRICS_NAME):
        raise PermissionDeniedException(
            f"the figures of all are for the token of the name {METRICS_NAME}"
        )


def _on_error(
    service: CompletionService, apis: EnabledApis, request: AnyRequest, error: Exception
) -> Response[Any]:
    refusal = _refusal(request, error)
    if refusal.status == 429:
        service.metrics.refusals.labels(refusal.problem.code).inc()
    return refused(request, refusal, apis)


def _refusal(request: AnyRequest, error: Exception) -> RefusalError:
    if isinstance(error, RefusalError):
        return error
    if isinstance(error, UnsupportedModelError):
        return RefusalError(501, Problem(error.code, str(error)))
    if isinstance(error, InputError | ConfigurationError):
        return RefusalError(400, Problem("bad_request", str(error)))
    if isinstance(error, HTTPException):
        status = error.status_code
        return RefusalError(status, Problem(_CODES.get(status, "refused"), error.detail))
    log_failure(f"{request.method} {request.url.path} failed", error)
    told = "the host could not answer; its log says where it failed"
    return RefusalError(500, Problem("internal_error", told))
