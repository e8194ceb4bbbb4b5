"""Authentication by a request's headers, before all routes. Plain ASGI. Web pages are refused."""

from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import msgspec

from engine.host.compat.dialects import Spoken
from engine.host.failures import RefusalLog
from engine.host.loopback import is_loopback
from engine.host.metrics import Metrics
from engine.host.openapi import NATIVE_PATHS
from engine.host.principals import (
    METRICS_NAME,
    Principal,
    Principals,
    WithdrawnError,
    note_principal,
    principal_of,
)
from engine.host.protocol import MAX_BODY_BYTES, PROTOCOL_HEADER, PROTOCOL_VERSION, Problem
from engine.host.quotas import QuotaError, QuotaKeeper

Event = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Event]]
Send = Callable[[Event], Awaitable[None]]
Headers = Mapping[str, bytes]
Application = Callable[[Event, Receive, Send], Awaitable[None]]  # as ASGI has it

_OPEN_PATHS = ("/health",)
_PLAIN_PATHS = ("/metrics",)  # Prometheus sends a token, and no header of ours
_LOGGED = (401, 403)  # what may be an attack
_MOST_DIGITS = 16  # of a body's length
_NOT_FROM_A_PAGE = (b"", b"none")  # of Sec-Fetch-Site: no browser, or a person typed the URL


@dataclass(frozen=True, slots=True)
class AuthMiddleware:
    """Passes requests on to `app`, with their principal in the scope."""

    app: Application
    principals: Principals
    is_loopback: bool  # over TCP on this machine, where a web page must not get in by name
    limits: QuotaKeeper = field(default_factory=QuotaKeeper)
    spoken: Spoken = field(default_factory=Spoken)
    metrics: Metrics = field(default_factory=Metrics)
    refused: RefusalLog = field(default_factory=RefusalLog)

    async def __call__(self, scope: Event, receive: Receive, send: Send) -> None:
        """Handle one request, or another event, of the ASGI server."""
        is_request = scope["type"] == "http"
        refusal = self._refusal(scope) if is_request else None
        if refusal is not None:
            await self._refuse(scope, send, *refusal)
        elif not is_request or scope["path"] in _OPEN_PATHS:
            await self.app(scope, receive, send)
        else:
            await self._limited(scope, receive, send)

    async def _limited(self, scope: Event, receive: Receive, send: Send) -> None:
        """Before the body is read, so that who sends too many is refused at no cost."""
        principal = principal_of(scope)
        with ExitStack() as request:
            try:
                told = _body_bytes(scope)
                count = request.enter_context(self.limits.request_of(principal, told or 0))
            except QuotaError as error:
                await self._refuse(scope, send, 429, error.problem, error.headers)
                return
            counted = None if told is not None else count
            await self.app(scope, self._while_known(principal, receive, counted), send)

    def _while_known(
        self, principal: Principal, receive: Receive, count: Callable[[int], None] | None
    ) -> Receive:
        """Hand out a body as long as its sender is known: the tokens may change meanwhile.

        `count` hears of its bytes, where nobody knew how many there would be.
        """
        tokens = self.principals.tokens

        async def received() -> Event:
            event = await receive()
            if event["type"] != "http.request":
                return event
            if self.principals.tokens is not tokens and principal not in self.principals.every:
                raise WithdrawnError
            if count is not None:
                count(len(event.get("body", b"")))
            return event

        return received

    async def _refuse(
        self,
        scope: Event,
        send: Send,
        status: int,
        problem: Problem,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """Count it, and answer in the form of the API that the path is of."""
        self.metrics.refusals.labels(problem.code).inc()
        if status in _LOGGED:
            self.refused.note(problem, scope["client"][0] if scope.get("client") else "")
        dialect = self.spoken.at(scope["path"]) or self.spoken.missing_at(scope["path"])
        content = problem if dialect is None else dialect.refusal(status, problem)
        own = {"Content-Type": "application/json", **(headers or {})}
        if status == 401:
            own["WWW-Authenticate"] = "Bearer"
        raw = [(name.lower().encode(), value.encode()) for name, value in own.items()]
        await send({"type": "http.response.start", "status": status, "headers": raw})
        await send({"type": "http.response.body", "body": msgspec.json.encode(content)})

    def _refusal(self, scope: Event) -> tuple[int, Problem] | None:
        headers = {name.decode("latin-1"): value for name, value in scope["headers"]}
        host = headers.get("host", b"").decode("latin-1")
        if self.is_loopback and not is_loopback(_name_in(host)):
            return 403, Problem("wrong_host", f"this host does not go by the name {host!r}")
        if _is_of_a_page(headers):
            return 403, Problem("web_page", "this host does not answer web pages")
        if scope["path"] in _OPEN_PATHS:
            return None
        principal = self.principals.named_by(_bearer(headers))
        if principal is None:
            return 401, Problem("wrong_token", "the request does not carry this host's token")
        note_principal(scope, principal)
        if principal.name == METRICS_NAME and scope["path"] not in _PLAIN_PATHS:
            return 403, Problem("not_allowed", "this token is for the figures of the host alone")
        if (missing := self.spoken.missing_at(scope["path"])) is not None:
            return 404, Problem("not_found", f"the API {self.spoken.advice(missing)}")
        if self.spoken.at(scope["path"]) is None and (
            wrong := _wrong_protocol(scope["path"], headers)
        ):
            return wrong
        return _wrong_body(headers)


def _body_bytes(scope: Event) -> int | None:
    """How long the body will be; None for one in chunks."""
    headers = dict(scope["headers"])
    if b"transfer-encoding" in headers:
        return None
    length = headers.get(b"content-length", b"0")
    is_known = length.isdigit() and len(length) < _MOST_DIGITS
    return min(int(length), MAX_BODY_BYTES) if is_known else MAX_BODY_BYTES


def _bearer(headers: Headers) -> bytes:
    """The token that a request carries; empty, as no token is, where it carries none."""
    scheme, _, token = headers.get("authorization", b"").partition(b" ")
    return token if scheme.lower() == b"bearer" else b""


def _is_of_a_page(headers: Headers) -> bool:
    """Whether a browser sends the request on behalf of a page, wherever that came from."""
    return "origin" in headers or headers.get("sec-fetch-site", b"") not in _NOT_FROM_A_PAGE


def _wrong_protocol(path: str, headers: Headers) -> tuple[int, Problem] | None:
    """The header is required: a page could send it only if this host agreed, which it never does."""
    version = headers.get(PROTOCOL_HEADER, b"").decode("latin-1")
    if version == str(PROTOCOL_VERSION) or path in _PLAIN_PATHS:
        return None
    if path.rstrip("/") not in NATIVE_PATHS:  # no client of ours was meant
        return 404, Problem("not_found", f"there is no path {path!r} here")
    given = f"not {version}" if version else f"and the request has no header {PROTOCOL_HEADER}"
    return 426, Problem(
        "wrong_protocol",
        f"this host speaks protocol {PROTOCOL_VERSION}, {given}: "
        "install one version of foregram on both sides",
    )


def _wrong_body(headers: Headers) -> tuple[int, Problem] | None:
    has_body = headers.get("content-length", b"0") != b"0" or "transfer-encoding" in headers
    kind = headers.get("content-type", b"").partition(b";")[0].strip().lower()
    if has_body and kind != b"application/json":
        return 415, Problem("wrong_type", "a body has to be of the type application/json")
    return None


def _name_in(host: str) -> str:
    """A Host header without its port, and an IPv6 address without its brackets."""
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0]
