"""The routes of the drop-in APIs that are switched on, each with the errors of its dialect.

What goes wrong there is what goes wrong in the native API, told in another form.
"""

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import msgspec
from litestar import Request, Response, post, route
from litestar.handlers import HTTPRouteHandler

from engine.errors import InputError
from engine.host.bodies import decoded
from engine.host.compat.answering import FailedError, answered
from engine.host.compat.dialect import HEALTH, Body, Dialect, Served
from engine.host.compat.dialects import Spoken
from engine.host.service import CompletionService

AnyRequest = Request[Any, Any, Any]
ErrorHandler = Callable[[AnyRequest, Any], Response[Any]]
ErrorHandlers = dict[int | type[Exception], ErrorHandler]

_DIALECT = "dialect"  # that a request's body is of, in its state
_NOT_IMPLEMENTED = 501
_LARGEST = 2**53  # up to which a number with a fraction tells whole ones apart


def drop_in_routes(
    service: CompletionService, dialects: Sequence[Dialect], handlers: ErrorHandlers
) -> list[Any]:
    """All routes; errors are those that `handlers` answer, in another form."""
    if not dialects:
        return []
    spoken = Spoken(tuple(dialects))
    paths: dict[str, list[Dialect]] = {}
    for dialect in dialects:
        for path in dialect.paths:
            paths.setdefault(path, []).append(dialect)
    routes: list[Any] = [
        _completing(service, path, speaking, spoken, handlers) for path, speaking in paths.items()
    ]
    for dialect in dialects:
        for one in dialect.routes(service):
            one.exception_handlers = _translated(handlers, dialect)
            routes.append(one)
    return [*routes, _health(service, dialects)]


def _completing(
    service: CompletionService,
    path: str,
    dialects: Sequence[Dialect],
    spoken: Spoken,
    handlers: ErrorHandlers,
) -> HTTPRouteHandler:
    @post(path, status_code=200, exception_handlers=_translated(handlers, dialects[0]))
    async def complete(request: AnyRequest) -> Response[Any]:
        """Complete as one of the dialects has it."""
        service.used_at = time.monotonic()
        body = _plain(decoded(await request.body(), dict[str, Any]))
        spoken.check(path, body)
        dialect = meant(dialects, body)
        request.state[_DIALECT] = dialect
        try:
            exchange = dialect.read(path, body, Served.by(service))
        except msgspec.ValidationError as error:
            raise InputError(str(error)) from error
        return await answered(request, service, dialect, exchange)

    return complete


def _plain(body: Body) -> Body:
    """What is null is as if it were not there; a number without a fraction is a whole one."""
    given = {name: value for name, value in body.items() if value is not None}
    whole = {
        name: int(value)
        for name, value in given.items()
        if isinstance(value, float) and value.is_integer() and abs(value) < _LARGEST
    }
    return given | whole


def meant(dialects: Sequence[Dialect], body: Body) -> Dialect:
    """The dialect that a body is of. Raises InputError where none is, or several are."""
    if len(dialects) == 1:
        return dialects[0]
    found = [one for one in dialects if one.is_meant(body)]
    if len(found) == 1:
        return found[0]
    ways = ", or ".join(f"{one.told_by} ({one.name})" for one in dialects)
    told = "and not several of them" if found else "and it has none of them"
    raise InputError(f"a body here has {ways}, {told}")


def _health(service: CompletionService, dialects: Sequence[Dialect]) -> HTTPRouteHandler:
    @route(HEALTH, http_method=["GET", "POST"], status_code=200)
    async def health() -> Response[dict[str, Any]]:
        """Say whether completions are served, in all dialects at once."""
        is_ready = service.state == "ready"
        said: dict[str, Any] = {"status": "ok" if is_ready else service.state}
        if is_ready:
            said["model"] = Served.by(service).model
            for dialect in dialects:
                said |= dialect.health(service)
        return Response(said, status_code=200 if is_ready else 503)

    return health


def _translated(handlers: ErrorHandlers, default: Dialect) -> ErrorHandlers:
    """Handlers whose Problems are told in the dialect of the request, or in `default`."""
    native: ErrorHandlers = {**handlers, FailedError: _fail}
    return {kind: partial(_tell, handler, default) for kind, handler in native.items()}


def _tell(
    handler: ErrorHandler, default: Dialect, request: AnyRequest, error: Exception
) -> Response[Any]:
    response = handler(request, error)
    problem, status = response.content, response.status_code or 500
    if problem.code == "model_unsupported":
        status = _NOT_IMPLEMENTED
    dialect: Dialect = request.state.get(_DIALECT, default)
    content = dialect.refusal(status, problem)
    return Response(content, status_code=status, headers=response.headers)


def _fail(_: AnyRequest, error: FailedError) -> Response[Any]:
    return Response(error.problem, status_code=error.status, headers=error.headers)
