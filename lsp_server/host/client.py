"""The requests to a host, and the ways in which they can fail."""

from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from typing import NoReturn

import httpx2
import msgspec

from engine.host.protocol import (
    Chunk,
    CloseRequest,
    CompleteEvent,
    CompleteRequest,
    Conflict,
    Feedback,
    Problem,
    Status,
    SyncRequest,
)
from lsp_server.host.probe import why_unreachable
from lsp_server.host.response_body import body_of, lines_of


class HostGoneError(Exception):
    """The host does not answer, or stopped in the middle of it."""


class HostAbsentError(HostGoneError):
    """The host was gone before it accepted a request."""


class HostConflictError(Exception):
    """The host does not hold these buffers at the version that a request builds on."""

    def __init__(self, uris: tuple[str, ...]) -> None:
        super().__init__(", ".join(uris))
        self.uris = uris


class HostRefusedError(Exception):
    """The host answers with an error."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.message)
        self.problem = problem


class HostClient:
    """A host under one address. Every method raises the errors above."""

    def __init__(self, http: httpx2.AsyncClient, endpoint: str = "") -> None:
        """Send through `http`; `endpoint` is the host's address for people."""
        self._http = http
        self._endpoint = endpoint or str(http.base_url).rstrip("/")
        self._decode = msgspec.json.Decoder(CompleteEvent).decode

    async def complete(
        self, request: CompleteRequest, on_accepted: Callable[[], None] = lambda: None
    ) -> AsyncGenerator[CompleteEvent]:
        """The events of a completion; closing the iterator cancels it.

        `on_accepted` is called once the host has accepted the request with its documents. Before
        that, a host that is not there is a HostAbsentError.
        """
        content = msgspec.json.encode(request)
        event: CompleteEvent | None = None
        is_accepted = False
        try:
            async with self._http.stream("POST", "/v1/complete", content=content) as response:
                if response.status_code != httpx2.codes.OK:
                    _refuse(response.status_code, await body_of(response))
                is_accepted = True
                on_accepted()
                async for line in lines_of(response):
                    event = self._decode(line)
                    yield event
        except (httpx2.HTTPError, httpx2.StreamError, msgspec.MsgspecError) as error:
            kind = HostGoneError if is_accepted else HostAbsentError
            raise kind(self._reason(error)) from error
        if event is None or isinstance(event, Chunk):
            raise HostGoneError("the host stopped in the middle of a completion")

    async def status(self) -> Status:
        """What the host is doing."""
        content = await self._request("GET", "/v1/status")
        try:
            return msgspec.json.decode(content, type=Status)
        except msgspec.MsgspecError as error:
            raise HostRefusedError(_no_host(str(error))) from error

    async def sync(self, request: SyncRequest) -> None:
        """Have the host hold buffers."""
        await self._request("POST", "/v1/buffers", request)

    async def close_buffers(self, request: CloseRequest) -> None:
        """Have the host close buffers."""
        await self._request("POST", "/v1/buffers/close", request)

    async def send(self, feedback: Feedback) -> None:
        """Report what became of a completion."""
        await self._request("POST", "/v1/feedback", feedback)

    async def close(self) -> None:
        """Close all connections."""
        await self._http.aclose()

    def _reason(self, error: Exception) -> str:
        if isinstance(error, httpx2.ConnectError):
            return why_unreachable(self._endpoint, error)
        reason = f"{type(error).__name__}: {error}".removesuffix(": ")
        return f"the completion host on {self._endpoint} stopped answering ({reason})"

    async def _request(
        self, method: str, path: str, message: msgspec.Struct | None = None
    ) -> bytes:
        content = None if message is None else msgspec.json.encode(message)
        try:
            async with self._http.stream(method, path, content=content) as response:
                body = await body_of(response)
        except (httpx2.HTTPError, httpx2.StreamError) as error:
            raise HostGoneError(self._reason(error)) from error
        if not response.is_success:
            _refuse(response.status_code, body)
        return body


def _no_host(reason: str) -> Problem:
    return Problem("no_host", f"what answers is no completion host ({reason})")


def _refuse(status: int, content: bytes) -> NoReturn:
    """Raise what the response says."""
    with suppress(msgspec.MsgspecError):
        if status == httpx2.codes.CONFLICT:
            raise HostConflictError(msgspec.json.decode(content, type=Conflict).uris)
        raise HostRefusedError(msgspec.json.decode(content, type=Problem))
    raise HostRefusedError(_no_host(str(status)))
