"""Who may come in: the token, the Host header, the protocol's version. Plain ASGI, before all."""

import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any

import msgspec

from engine.host.protocol import PROTOCOL_HEADER, PROTOCOL_VERSION, Problem

Event = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Event]]
Send = Callable[[Event], Awaitable[None]]
Application = Callable[[Event, Receive, Send], Awaitable[None]]  # as ASGI has it

_OPEN_PATHS = ("/health",)


@dataclass(frozen=True, slots=True)
class Gate:
    """Lets requests through to `app`. `token` None asks for none."""

    app: Application
    token: str | None
    is_loopback: bool  # over TCP on this machine, where a web page must not get in by name

    async def __call__(self, scope: Event, receive: Receive, send: Send) -> None:
        """Serve one connection of the ASGI server."""
        refusal = self._refusal(scope) if scope["type"] == "http" else None
        if refusal is None:
            await self.app(scope, receive, send)
            return
        status, problem = refusal
        headers = [(b"content-type", b"application/json")]
        if status == 401:
            headers.append((b"www-authenticate", b"Bearer"))
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": msgspec.json.encode(problem)})

    def _refusal(self, scope: Event) -> tuple[int, Problem] | None:
        headers = {name.decode("latin-1"): value for name, value in scope["headers"]}
        host = headers.get("host", b"").decode("latin-1")
        if self.is_loopback and not is_loopback(_name_in(host)):
            return 403, Problem("wrong_host", f"this host does not go by the name {host!r}")
        if scope["path"] in _OPEN_PATHS:
            return None
        if not self._knows_token(headers.get("authorization", b"")):
            return 401, Problem("wrong_token", "the request does not carry this host's token")
        version = headers.get(PROTOCOL_HEADER, str(PROTOCOL_VERSION).encode()).decode("latin-1")
        if version != str(PROTOCOL_VERSION):
            return 426, Problem(
                "wrong_protocol",
                f"this host speaks protocol {PROTOCOL_VERSION}, not {version}: "
                "install one version of foregram on both sides",
            )
        return None

    def _knows_token(self, authorization: bytes) -> bool:
        if self.token is None:
            return True
        return secrets.compare_digest(authorization, f"Bearer {self.token}".encode())


def is_loopback(name: str) -> bool:
    """Whether a name or address is of this machine alone, whoever resolves it."""
    if name.lower() == "localhost":
        return True
    with suppress(ValueError):
        return ip_address(name).is_loopback
    return False


def _name_in(host: str) -> str:
    """A Host header without its port, and an IPv6 address without its brackets."""
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0]
