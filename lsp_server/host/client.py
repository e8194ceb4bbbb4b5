"""The requests to a host, and the ways in which they can fail."""

import ssl
from collections.abc import AsyncGenerator, Callable, Mapping

import httpx2
import msgspec

from engine.host.protocol import (
    Chunk,
    CloseRequest,
    CompleteEvent,
    CompleteRequest,
    Feedback,
    Problem,
    Status,
    SyncRequest,
)
from lsp_server.host.response_body import body_of, lines_of

NO_HOST = "no_host"  # the code of a problem: what answers is something else


class HostGoneError(Exception):
    """The host does not answer, or stopped in the middle of it."""


class HostAbsentError(HostGoneError):
    """The host was gone before it accepted a request."""


class HostRefusedError(Exception):
    """The host answers with an error."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.message)
        self.problem = problem


class HostConflictError(HostRefusedError):
    """The host does not hold buffers at the version that a request builds on."""


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
                    raise _refusal(response.status_code, await body_of(response))
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

    async def status(self, client_id: str = "") -> Status:
        """What the host is doing; it counts the clients other than `client_id`."""
        named = {"client": client_id} if client_id else {}
        content = await self._request("GET", "/v1/status", params=named)
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
            return _why_unreachable(self._endpoint, error)
        reason = f"{type(error).__name__}: {error}".removesuffix(": ")
        return f"the completion host on {self._endpoint} stopped answering ({reason})"

    async def _request(
        self,
        method: str,
        path: str,
        message: msgspec.Struct | None = None,
        params: Mapping[str, str] | None = None,
    ) -> bytes:
        content = None if message is None else msgspec.json.encode(message)
        try:
            async with self._http.stream(method, path, content=content, params=params) as response:
                body = await body_of(response)
        except httpx2.ConnectError as error:
            raise HostAbsentError(self._reason(error)) from error
        except (httpx2.HTTPError, httpx2.StreamError) as error:
            raise HostGoneError(self._reason(error)) from error
        if not response.is_success:
            raise _refusal(response.status_code, body)
        return body


def _no_host(reason: str) -> Problem:
    return Problem(NO_HOST, f"what answers is no completion host ({reason})")


def _refusal(status: int, content: bytes) -> HostRefusedError:
    """What the response says."""
    try:
        problem = msgspec.json.decode(content, type=Problem)
    except msgspec.MsgspecError:
        return HostRefusedError(_no_host(str(status)))
    return HostConflictError(problem) if problem.uris else HostRefusedError(problem)


def _why_unreachable(endpoint: str, error: Exception) -> str:
    """Why no connection came about, and what helps; `endpoint` is where the host should listen."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            what = f"the certificate of {endpoint} is not accepted: {cause.verify_message}"
            return what if "expired" in what else f"{what}; ca_file may name the one that signed it"
        cause = cause.__cause__ or cause.__context__
    reason = f"no completion host listens on {endpoint}"
    return f"{reason}: {error}" if endpoint.startswith("https:") else reason
