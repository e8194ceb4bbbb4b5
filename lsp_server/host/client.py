"""Requests to a host, and the ways in which they can fail."""

import asyncio
import json
import time
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Literal

import httpx2
import msgspec

from engine.host.http_client import body_of, lines_of, rejected_certificate, retry_after_s
from engine.host.protocol import (
    REPLICA_HEADER,
    CloseRequest,
    CompleteEvent,
    CompleteRequest,
    Feedback,
    Problem,
    Status,
    SyncRequest,
)
from engine.model_names import printable
from engine.request import Chunk
from lsp_server.host.address import HostAddress, host_address
from lsp_server.settings import Settings

_LONGEST_WAIT_S = 60.0  # seconds; caps the pause that a host names after a 429
_ANSWER_S = 5.0  # seconds for a whole answer, even if it arrives in drips
_UPLOAD_S = 60.0  # seconds to upload documents: the largest body, 32 MiB, at 4.5 Mbit/s
NO_HOST = "no_host"  # problem code: the answer is not from a completion host
_MOST_SHOWN = 500  # characters of a host's message shown to people
_ODD = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)  # of answers that are not ours


class HostGoneError(Exception):
    """The host does not answer, or stopped halfway through an answer."""


class HostAbsentError(HostGoneError):
    """The host was gone before it accepted a request."""


class HostRefusedError(Exception):
    """The host answers with an error, or lacks buffers at the version that a request builds on."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.message)
        self.problem = problem


class HostQuotaError(HostRefusedError):
    """The host's limit for this user is reached for the moment."""

    def __init__(self, problem: Problem, retry_after_s: float) -> None:
        super().__init__(problem)
        self.retry_after_s = retry_after_s


class HostClient:
    """A host at one address. Methods raise the errors above; a pause after a 429 is kept here."""

    def __init__(self, http: httpx2.AsyncClient, endpoint: str = "") -> None:
        """Send through `http`; messages name the host by `endpoint`."""
        self._http = http
        self._endpoint = endpoint or str(http.base_url).rstrip("/")
        self.replica = ""  # the replica that answered last
        self._decode = msgspec.json.Decoder(CompleteEvent).decode
        self._waits_until = 0.0
        self._waits_for: Problem | None = None

    async def complete(self, request: CompleteRequest) -> AsyncGenerator[CompleteEvent]:
        """Yield a completion's events, first an empty piece once the host has accepted the request.

        Closing the iterator cancels it. Raises HostAbsentError if the host is gone before that.
        """
        self._check_wait()
        content, is_accepted = encoded(request), False
        event: CompleteEvent = Chunk("")
        try:
            async with self._http.stream("POST", "/v1/complete", content=content) as response:
                self.replica = response.headers.get(REPLICA_HEADER, "")
                if response.status_code != httpx2.codes.OK:
                    raise self._unaccepted(response, await body_of(response))
                is_accepted = True
                yield event
                async for line in lines_of(response):
                    event = self._decode(line)
                    yield event
        except (httpx2.HTTPError, httpx2.StreamError, *_ODD) as error:
            kind = HostGoneError if is_accepted else HostAbsentError
            raise kind(self._reason(error)) from error
        if isinstance(event, Chunk):
            raise HostGoneError("the host stopped in the middle of a completion")

    async def status(self, client_id: str = "") -> Status:
        """Return the host's status, which counts the clients other than `client_id`."""
        query = f"?client={client_id}" if client_id else ""
        content = await self._request(f"/v1/status{query}")
        try:
            return msgspec.json.decode(content, type=Status)
        except _ODD as error:
            raise HostRefusedError(_no_host(str(error))) from error

    async def metrics(self) -> str:
        """Return the host's metrics page."""
        return (await self._request("/metrics")).decode("utf-8", "replace")

    async def sync(self, request: SyncRequest) -> None:
        """Send buffers to the host."""
        self._check_wait()
        await self._request("/v1/buffers", request, limit_s=_UPLOAD_S)

    async def close_buffers(self, request: CloseRequest) -> None:
        """Have the host close buffers."""
        await self._request("/v1/buffers/close", request)

    async def send(self, feedback: Feedback) -> None:
        """Report what became of a completion."""
        await self._request("/v1/feedback", feedback)

    async def close(self) -> None:
        """Close all connections."""
        await self._http.aclose()

    def _reason(self, error: Exception) -> str:
        where = self._endpoint
        if not isinstance(error, httpx2.ConnectError):
            reason = f"{type(error).__name__}: {error}".removesuffix(": ")
            return f"the completion host on {where} stopped answering ({reason})"
        if (wrong := rejected_certificate(error)) is not None:
            what = f"the certificate of {where} is not accepted: {wrong.verify_message}"
            return what if "expired" in what else f"{what}; ca_file may name the one that signed it"
        reason = f"no completion host listens on {where}"
        return f"{reason}: {error}" if where.startswith("https:") else reason

    async def _request(
        self, path: str, message: msgspec.Struct | None = None, limit_s: float | None = None
    ) -> bytes:
        method, content = ("GET", None) if message is None else ("POST", encoded(message))
        try:
            async with (
                asyncio.timeout(limit_s or _ANSWER_S),
                self._http.stream(method, path, content=content) as response,
            ):
                body = await body_of(response)
        except httpx2.ConnectError as error:
            raise HostAbsentError(self._reason(error)) from error
        except (httpx2.HTTPError, httpx2.StreamError, TimeoutError) as error:
            raise HostGoneError(self._reason(error)) from error
        self.replica = response.headers.get(REPLICA_HEADER, "")
        if not response.is_success:
            raise self._refused(response, body)
        return body

    def _check_wait(self) -> None:
        left_s = self._waits_until - time.monotonic()
        if self._waits_for is not None and left_s > 0:
            raise HostQuotaError(self._waits_for, left_s)

    def _unaccepted(
        self, response: httpx2.Response, content: bytes
    ) -> HostRefusedError | HostAbsentError:
        """Return why a completion failed. A proxy's error means that the host is absent."""
        refusal = self._refused(response, content)
        if refusal.problem.code != NO_HOST or not response.is_server_error:
            return refusal
        answer = f"{self._endpoint} answers {response.status_code}"
        return HostAbsentError(f"{answer}, as a proxy does without a host behind it")

    def _refused(self, response: httpx2.Response, content: bytes) -> HostRefusedError:
        try:
            problem = msgspec.json.decode(content, type=Problem)
            shown = printable(problem.message[:_MOST_SHOWN])  # the machine is not trusted
            problem = msgspec.structs.replace(problem, message=shown)
        except _ODD:
            problem = _no_host(str(response.status_code))
        if response.status_code == httpx2.codes.TOO_MANY_REQUESTS:
            wait_s = min(max(retry_after_s(response) or 1.0, 1.0), _LONGEST_WAIT_S)
            self._waits_until = time.monotonic() + wait_s
            self._waits_for = problem
            return HostQuotaError(problem, wait_s)
        return HostRefusedError(problem)


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """The result of asking a host for its status.

    `absent`: nothing listens; `silent`: it hangs up; `still`: no reaction; `refused`: no host for
    us.
    """

    kind: Literal["status", "absent", "silent", "still", "refused"]
    status: Status | None = None
    reason: str = ""  # a sentence for people, without a status
    code: str = ""  # the host's error code, if it sent one


async def host_status(settings: Settings, client_id: str = "") -> ProbeResult:
    """Probe the host that the settings name, as the client `client_id`."""
    return await probe(host_address(settings), client_id)


async def probe(address: HostAddress, client_id: str = "") -> ProbeResult:
    """Ask the host at `address` for its status; a failure is a result too."""
    host = HostClient(address.client(), address.endpoint)
    try:
        return ProbeResult("status", await host.status(client_id))
    except HostAbsentError as error:
        return ProbeResult("absent", reason=str(error))
    except HostGoneError as error:
        cause = type(error.__cause__).__name__
        reason = f"the completion host on {address.endpoint} does not answer: {cause}"
        is_late = isinstance(error.__cause__, TimeoutError | httpx2.TimeoutException)
        return ProbeResult("still" if is_late else "silent", reason=reason)
    except HostRefusedError as error:
        reason = f"the completion host on {address.endpoint} refuses: {error}"
        if error.problem.code == NO_HOST:
            reason = f"what listens on {address.endpoint} is not a completion host of this version"
        return ProbeResult("refused", reason=reason, code=error.problem.code)
    finally:
        await host.close()


async def host_metrics(settings: Settings) -> str:
    """Return the metrics page of the settings' host; "" if it is gone, or this token reads none."""
    address = host_address(settings)
    host = HostClient(address.client(), address.endpoint)
    try:
        return await host.metrics()
    except (HostGoneError, HostRefusedError):
        return ""
    finally:
        await host.close()


def encoded(message: msgspec.Struct) -> bytes:
    """Encode as JSON. Unpaired surrogates, which UTF-8 cannot carry, become question marks."""
    try:
        return msgspec.json.encode(message)
    except UnicodeEncodeError:
        plain = msgspec.to_builtins(message)
        return json.dumps(plain, ensure_ascii=False).encode("utf-8", "replace")


def _no_host(reason: str) -> Problem:
    return Problem(NO_HOST, f"what answers is no completion host ({reason})")
