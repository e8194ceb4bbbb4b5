"""The drop-in APIs by name, and the routes of those that are switched on.

What goes wrong there is what goes wrong in the native API, told in another form.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec
from litestar import Request, Response, post, route
from litestar.handlers import HTTPRouteHandler

from engine.errors import ConfigurationError, InputError
from engine.host.bodies import decoded
from engine.host.compat.answering import answered
from engine.host.compat.dialect import HEALTH, Body, Dialect, Served
from engine.host.compat.llama_cpp import LlamaCpp
from engine.host.compat.mistral import Mistral
from engine.host.compat.openai import OpenAI
from engine.host.compat.tabby import Tabby
from engine.host.service import CompletionService

NONE = "none"
_ALL: tuple[Dialect, ...] = (OpenAI(), Mistral(), LlamaCpp(), Tabby())
NAMES = tuple(one.name for one in _ALL)
DEFAULT = "openai"
AnyRequest = Request[Any, Any, Any]
ErrorHandler = Callable[[AnyRequest, Any], Response[Any]]
ErrorHandlers = dict[int | type[Exception], ErrorHandler]

_DIALECT = "dialect"  # that a request's body is of, in its state
_NOT_IMPLEMENTED = 501
_LARGEST = 2**53  # up to which a number with a fraction tells whole ones apart


@dataclass(frozen=True, slots=True)
class Spoken:
    """The drop-in APIs that a host speaks."""

    dialects: tuple[Dialect, ...] = ()

    @classmethod
    def named(cls, names: str) -> "Spoken":
        """Read names between commas, or `none`. Raises ConfigurationError."""
        wanted = [] if names == NONE else [name.strip() for name in names.split(",")]
        unknown = [name for name in wanted if name not in NAMES]
        if unknown:
            raise ConfigurationError(
                f"there is no API {unknown[0]!r}: name some of {', '.join(NAMES)}, or {NONE}"
            )
        return cls(tuple(one for one in _ALL if one.name in wanted))

    @property
    def names(self) -> str:
        """As `named` reads them."""
        return ",".join(one.name for one in self.dialects) or NONE

    def at(self, path: str) -> Dialect | None:
        """Whose errors a request to this path expects; None: it is of the native protocol."""
        if path == HEALTH and self.dialects:
            return self.dialects[0]
        return next((one for one in self.dialects if _has(one, path)), None)

    def missing_at(self, path: str) -> Dialect | None:
        """A drop-in API that has this path, and is switched off; None where `at` finds one."""
        if self.at(path) is not None:
            return None
        if path == HEALTH:
            return _ALL[0]
        return next((one for one in _ALL if _has(one, path)), None)

    def advice(self, missing: Dialect) -> str:
        """How an API that is switched off is switched on, beside those that are not."""
        spoken = {one.name for one in (*self.dialects, missing)}
        names = ",".join(one.name for one in _ALL if one.name in spoken)
        return f"{missing.name} is switched off here: start the host with --api {names}"

    def check(self, path: str, body: Body) -> None:
        """Raise InputError where a body is only of an API that has this path and is switched off."""
        if any(one.is_meant(body) for one in self.dialects if path in one.paths):
            return
        spoken = {one.name for one in self.dialects}
        for one in _ALL:
            if one.name not in spoken and path in one.paths and one.is_meant(body):
                raise InputError(
                    f"a body with {one.told_by} is for another API: {self.advice(one)}"
                )


def _has(dialect: Dialect, path: str) -> bool:
    places: Sequence[str] = (*dialect.paths, *dialect.other_paths)
    return any(path == place or path.startswith(f"{place}/") for place in places)


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
    return {kind: partial(_tell, handler, default) for kind, handler in handlers.items()}


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
