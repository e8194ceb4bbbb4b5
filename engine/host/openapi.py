"""The native protocol as an OpenAPI page, made from its types: for other clients, and for fuzzers."""

from dataclasses import dataclass
from typing import Any

import msgspec

from engine.host.protocol import (
    PROTOCOL_HEADER,
    PROTOCOL_VERSION,
    CloseRequest,
    CompleteEvent,
    CompleteRequest,
    Feedback,
    Problem,
    Status,
    SyncRequest,
)

OPENAPI_PATH = "/v1/openapi.json"
_SCHEMAS = "#/components/schemas/{name}"


@dataclass(frozen=True, slots=True)
class _Route:
    """`refusals` are statuses that a `Problem` comes with, beside those of every route."""

    path: str
    summary: str
    method: str = "post"
    body: Any = None
    status: int = 204
    answer: Any = None
    kind: str = "application/json"
    refusals: tuple[int, ...] = ()


_ROUTES = (
    _Route(
        "/v1/complete",
        "Complete at a position; lines of JSON",
        body=CompleteRequest,
        status=200,
        answer=CompleteEvent,
        kind="application/x-ndjson",
        refusals=(409, 503),
    ),
    _Route("/v1/buffers", "Hold buffers at their versions", body=SyncRequest, refusals=(409,)),
    _Route("/v1/buffers/close", "Forget buffers", body=CloseRequest),
    _Route("/v1/feedback", "Count what became of a completion", body=Feedback, refusals=(404,)),
    _Route("/v1/status", "What the host is doing", "get", status=200, answer=Status),
    _Route("/v1/stop", "Finish what is running, then exit", status=202),
    _Route("/health", "Whether completions are served", "get", status=200, refusals=(503,)),
    _Route("/metrics", "Counts for Prometheus", "get", status=200),
)
NATIVE_PATHS = frozenset(one.path for one in _ROUTES) | {OPENAPI_PATH}
_REFUSALS = {
    400: "the message cannot be read",
    401: "the token is not this host's",
    403: "not from there: a web page, or another machine",
    404: "there is no such completion",
    409: "buffers are not held at the version named",
    413: "the body is too large",
    415: "the body is not of the type application/json",
    426: "another version of the protocol",
    429: "more than one client's share",
    503: "the host is not ready",
}
_OF_EVERY_ROUTE = (400, 401, 403, 413, 415, 426, 429)


def openapi_page(version: str) -> dict[str, Any]:
    """The page, as OpenAPI 3.1 has it; `version` is that of the program."""
    types = [one for route in _ROUTES for one in (route.body, route.answer) if one is not None]
    _, schemas = msgspec.json.schema_components([*types, Problem], ref_template=_SCHEMAS)
    paths: dict[str, dict[str, Any]] = {}
    for route in _ROUTES:
        paths.setdefault(route.path, {})[route.method] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {"title": "foregram's completion host", "version": version},
        "paths": paths,
        "security": [{"token": [], "protocol": []}],
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer"},
                "protocol": {
                    "type": "apiKey",
                    "in": "header",
                    "name": PROTOCOL_HEADER,
                    "description": f"the number {PROTOCOL_VERSION}",
                },
            },
        },
    }


def _operation(route: _Route) -> dict[str, Any]:
    answers: dict[str, Any] = {str(route.status): {"description": route.summary}}
    if route.answer is not None:
        answers[str(route.status)]["content"] = {route.kind: {"schema": _schema(route.answer)}}
    problem = {"application/json": {"schema": _schema(Problem)}}
    for status in sorted({*_OF_EVERY_ROUTE, *route.refusals}):
        answers[str(status)] = {"description": _REFUSALS[status], "content": problem}
    operation: dict[str, Any] = {"summary": route.summary, "responses": answers}
    if route.body is not None:
        content = {"application/json": {"schema": _schema(route.body)}}
        operation["requestBody"] = {"required": True, "content": content}
    if route.path == "/v1/status":
        client = {"name": "client", "in": "query", "schema": {"type": "string"}}
        operation["parameters"] = [client | {"description": "who is not counted"}]
    return operation


def _schema(kind: Any) -> dict[str, Any]:  # noqa: ANN401 - a type, or a union of some
    (schema,), _ = msgspec.json.schema_components([kind], ref_template=_SCHEMAS)
    return schema
