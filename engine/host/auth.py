"""Authentication by headers, before all routes, as plain ASGI. Web pages are refused."""

from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import msgspec

from engine.host.compat.apis import EnabledApis
from engine.host.failures import RateLimitedLog, RefusalError
from engine.host.loopback import is_loopback
from engine.host.metrics import Metrics
from engine.host.principals import METRICS_NAME, SCOPE_KEY, WITHDRAWN, Principals
from engine.host.protocol import (
    MAX_BODY_BYTES,
    PROTOCOL_HEADER,
    PROTOCOL_VERSION,
    REPLICA_HEADER,
    Problem,
)
from engine.host.quotas import QuotaKeeper

Event = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Event]]
Send = Callable[[Event], Awaitable[None]]
Headers = Mapping[str, bytes]
Application = Callable[[Event, Receive, Send], Awaitable[None]]  # an ASGI application

_OPEN_PATH = "/health"
_PLAIN_PATH = "/metrics"  # Prometheus sends a token, but not the protocol header
NATIVE_PATHS = frozenset(
    f"/v1/{name}" for name in ("complete", "buffers", "buffers/close", "feedback", "status", "stop")
)
_LOGGED = (401, 403)  # possible attacks
_HEADERS = {
    401: {"WWW-Authenticate": "Bearer"},
    411: {"Connection": "close"},  # proxies may disagree about where such a request ends
}
_MOST_DIGITS = 16  # a Content-Length has fewer digits, or is capped
_NOT_FROM_A_PAGE = (b"", b"none")  # Sec-Fetch-Site without a browser, or of a URL typed in


@dataclass(frozen=True, slots=True)
class AuthMiddleware:
    """Passes authenticated requests to `app`, with their principal in the scope."""

    app: Application
    principals: Principals
    is_loopback: bool  # on a local port: Host must be a loopback name, so no web page gets in
    limits: QuotaKeeper = field(default_factory=QuotaKeeper)
    apis: EnabledApis = field(default_factory=EnabledApis)
    metrics: Metrics = field(default_factory=Metrics)
    log: RateLimitedLog = field(default_factory=RateLimitedLog)
    replica: str = ""  # this host's name in each answer, if several share an address

    async def __call__(self, scope: Event, receive: Receive, send: Send) -> None:
        """Handle one ASGI scope: an HTTP request or a lifespan."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        if self.replica:
            send = _naming(self.replica, send)
        with ExitStack() as request:
            try:  # before the body is read, so that a refusal is cheap
                principal = self._checked(scope)
                if principal is not None:
                    request.enter_context(self.limits.request_of(principal, _body_bytes(scope)))
                    receive = self._while_known(principal, receive)
            except RefusalError as error:
                await self._refuse(scope, send, error)
            else:
                await self.app(scope, receive, send)

    def _while_known(self, principal: str, receive: Receive) -> Receive:
        """Wrap `receive` to refuse the request if the principal loses its tokens meanwhile."""
        tokens = self.principals.tokens

        async def received() -> Event:
            event = await receive()
            is_known = self.principals.tokens is tokens or principal in self.principals.every
            if event["type"] == "http.request" and not is_known:
                raise RefusalError(401, WITHDRAWN)
            return event

        return received

    async def _refuse(self, scope: Event, send: Send, error: RefusalError) -> None:
        status, problem = error.status, error.problem
        self.metrics.refusals.labels(problem.code).inc()
        if status in _LOGGED:
            self.log.refusal(problem, scope["client"][0] if scope.get("client") else "")
        api = self.apis.at(scope["path"])
        content = problem if api is None else api.refusal(status, problem)
        own = {"Content-Type": "application/json", **error.headers, **_HEADERS.get(status, {})}
        raw = [(name.lower().encode(), value.encode()) for name, value in own.items()]
        await send({"type": "http.response.start", "status": status, "headers": raw})
        await send({"type": "http.response.body", "body": msgspec.json.encode(content)})

    def _checked(self, scope: Event) -> str | None:
        """Return the request's principal; None for an open path. Raises RefusalError."""
        path = scope["path"]
        headers = {name.decode("latin-1"): value for name, value in scope["headers"]}
        host = headers.get("host", b"").decode("latin-1")
        if "transfer-encoding" in headers:
            raise _refused(
                411, "no_length", "a body has to tell its length, by content-length alone"
            )
        if self.is_loopback and not is_loopback(_name_in(host)):
            raise _refused(403, "wrong_host", f"this host does not go by the name {host!r}")
        if "origin" in headers or headers.get("sec-fetch-site", b"") not in _NOT_FROM_A_PAGE:
            raise _refused(403, "web_page", "this host does not answer web pages")
        if path == _OPEN_PATH:
            return None
        principal = self.principals.named_by(_bearer(headers))
        if principal is None:
            raise _refused(401, "wrong_token", "the request does not carry this host's token")
        scope[SCOPE_KEY] = principal
        if principal == METRICS_NAME and path != _PLAIN_PATH:
            raise _refused(403, "not_allowed", "this token is for the figures of the host alone")
        api = self.apis.at(path)
        if api is None:
            _check_protocol(path, headers)
        elif off := self.apis.off(api):
            raise _refused(404, "not_found", f"the API {off}")
        kind = headers.get("content-type", b"").partition(b";")[0].strip().lower()
        if headers.get("content-length", b"0") != b"0" and kind != b"application/json":
            raise _refused(415, "wrong_type", "a body has to be of the type application/json")
        return principal


def _naming(replica: str, send: Send) -> Send:
    header = (REPLICA_HEADER.encode(), replica.encode())

    async def named_send(event: Event) -> None:
        if event["type"] == "http.response.start":
            event = {**event, "headers": [*event["headers"], header]}  # answers may share it
        await send(event)

    return named_send


def _refused(status: int, code: str, message: str) -> RefusalError:
    return RefusalError(status, Problem(code, message))


def _body_bytes(scope: Event) -> int:
    length = dict(scope["headers"]).get(b"content-length", b"0")
    is_known = length.isdigit() and len(length) < _MOST_DIGITS
    return min(int(length), MAX_BODY_BYTES) if is_known else MAX_BODY_BYTES


def _bearer(headers: Headers) -> bytes:
    scheme, _, token = headers.get("authorization", b"").partition(b" ")
    return token if scheme.lower() == b"bearer" else b""


def _check_protocol(path: str, headers: Headers) -> None:
    """Require the protocol header, which no web page can send without CORS. Raises RefusalError."""
    version = headers.get(PROTOCOL_HEADER, b"").decode("latin-1")
    if version == str(PROTOCOL_VERSION) or path == _PLAIN_PATH:
        return
    if path.rstrip("/") not in NATIVE_PATHS:  # not from a foregram client
        raise _refused(404, "not_found", f"there is no path {path!r} here")
    given = f"not {version}" if version else f"and the request has no header {PROTOCOL_HEADER}"
    raise _refused(
        426,
        "wrong_protocol",
        f"this host speaks protocol {PROTOCOL_VERSION}, {given}: "
        "install one version of foregram on both sides",
    )


def _name_in(host: str) -> str:
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0]
