"""HTTP to an upstream. Errors never quote a token; clients see no address and no option."""

import time
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import httpx2
import msgspec

from engine.errors import ConfigurationError, ForegramError
from engine.host.http_client import (
    body_of,
    http_client,
    lines_of,
    rejected_certificate,
    retry_after_s,
    tls_context,
)
from engine.host.upstream.options import UpstreamOptions

_MOST_SAID = 300  # characters quoted from an upstream's error
_TOLD = {
    "upstream_failed": "the upstream failed",
    "upstream_unreachable": "the upstream cannot be reached, or is not ready",
    "upstream_untrusted": "the upstream's certificate is not accepted",
    "upstream_timeout": "the upstream does not go on",
    "upstream_broken": "the upstream broke off",
    "upstream_denied": "the upstream does not accept the host's token",
    "upstream_not_found": "the upstream does not have the host's model",
}
_CONNECT_S = 5.0  # seconds to connect
_SILENT_S = 60.0  # seconds without data, while the upstream queues or reads a prompt
_LONGEST_REST_S = 60.0  # seconds; cap on Retry-After
_MOST_KEPT = 64  # idle connections kept open: as many as the default sequences of an upstream
_KEPT_S = 4.0  # seconds a connection may idle; vLLM's and SGLang's servers close it after 5
_DONE = b'{"choices":[{"finish_reason":"stop"}]}'  # in case no event gave a reason


class UpstreamError(ForegramError):
    """The upstream could not generate. `said` is its own message, which may quote a prompt."""

    exit_status = 8

    def __init__(
        self, code: str, message: str, *, said: str = "", retry_after_s: float | None = None
    ) -> None:
        words = f": {said[:_MOST_SAID]}" if said else ""
        super().__init__(f"{message}{words}")
        self.code = code
        self.said = said
        self.retry_after_s = retry_after_s
        self._message = message

    @property
    def told(self) -> str:
        """The message for clients: no address or option, but why a request was refused."""
        if self.code == "upstream_refused":
            return f"the upstream refused: {self.said[:_MOST_SAID] or 'it does not say why'}"
        if self.retry_after_s is not None:
            return f"the upstream is busy; ask again in {_seconds(self.retry_after_s)}"
        return f"{_TOLD[self.code]}; the host's log says more"

    @property
    def logged(self) -> str:
        """The message for the log: without the upstream's words about a prompt."""
        return self._message


class UpstreamOptionsError(ConfigurationError):
    """The host's options do not fit the upstream."""

    @property
    def told(self) -> str:
        """The message for clients: no address or option."""
        return "the host's options do not fit its upstream; the host's log says more"


def _seconds(wait_s: float) -> str:
    return f"{max(1, round(wait_s))} s"


class UpstreamChannel:
    """A connection pool to one upstream, for one event loop. Its methods raise UpstreamError."""

    def __init__(self, options: UpstreamOptions) -> None:
        self.name = f"the upstream {options.base_url}"  # for messages
        self._http = http_client(
            options.base_url,
            options.token,
            tls_context(options.base_url, options.ca_file, "--upstream-ca-file"),
            {"user-agent": "foregram"},
            is_local=options.is_local,
            timeout=httpx2.Timeout(_SILENT_S, connect=_CONNECT_S),
            limits=httpx2.Limits(
                max_connections=None,
                max_keepalive_connections=_MOST_KEPT,
                keepalive_expiry=_KEPT_S,
            ),
        )
        self._rests_until = 0.0  # time.monotonic() until which the upstream is busy

    async def ask(self, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return the object that a route answers to GET, or to POST if there is a body."""
        async with self._answer(path, body) as response:
            content = await body_of(response)
        try:
            answer = msgspec.json.decode(content)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            told = f"{self.name}{path} answers no JSON"
            raise UpstreamError("upstream_broken", told) from error
        return answer if isinstance(answer, dict) else {}

    async def streamed(self, body: dict[str, Any]) -> AsyncGenerator[bytes]:
        """Yield the data of a completion's events; closing this ends the upstream's work."""
        rest_s = self._rests_until - time.monotonic()
        if rest_s > 0:
            raise self._busy(rest_s)
        async with self._answer("/v1/completions", body) as response:
            if "json" in response.headers.get("content-type", ""):  # it does not stream
                yield await body_of(response)
                return
            async for line in lines_of(response):
                name, _, value = line.partition(b":")
                if name == b"error":  # only llama.cpp sends this field
                    yield b'{"error":' + value + b"}"
                elif name == b"data" and value.strip() == b"[DONE]":
                    yield _DONE
                elif name == b"data" and value.strip():
                    yield value.strip()

    async def close(self) -> None:
        """Close all connections."""
        await self._http.aclose()

    @asynccontextmanager
    async def _answer(
        self, path: str, body: dict[str, Any] | None
    ) -> AsyncIterator[httpx2.Response]:
        method = "GET" if body is None else "POST"
        with self._told():  # also what reading the answer raises
            async with self._http.stream(method, path, json=body) as response:
                if not response.is_success:
                    raise await self._refusal(response)
                yield response

    async def _refusal(self, response: httpx2.Response) -> UpstreamError:
        said, wait_s = _sentence(await body_of(response)), retry_after_s(response)
        status, who = response.status_code, self.name
        words = f": {said[:_MOST_SAID]}" if said else ""
        if status in (401, 403):
            return UpstreamError(
                "upstream_denied",
                f"{who} does not accept the token ({status}{words}); --upstream-token-file names "
                "the file that holds it",
            )
        if status == 404:
            return UpstreamError(
                "upstream_not_found",
                f"{who} has no such model or no /v1/completions{words}; --upstream-model names its "
                "model",
            )
        if status == 429 or (status == 503 and wait_s is not None):
            wait_s = 1.0 if wait_s is None else wait_s
            self._rests_until = time.monotonic() + min(wait_s, _LONGEST_REST_S)
            return self._busy(wait_s)
        if status in (502, 503, 504):
            return UpstreamError("upstream_unreachable", f"{who} is not ready ({status}{words})")
        verb = "refused" if status < 500 else "failed"
        return UpstreamError(f"upstream_{verb}", f"{who} {verb} ({status})", said=said)

    def _busy(self, rest_s: float) -> UpstreamError:
        told = f"{self.name} is busy; it can be asked again in {_seconds(rest_s)}"
        return UpstreamError("upstream_busy", told, retry_after_s=rest_s)

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
            if (wrong := rejected_certificate(error)) is not None:
                raise UpstreamError(
                    "upstream_untrusted",
                    f"the certificate of {self.name} is not accepted: {wrong.verify_message}; "
                    "--upstream-ca-file may name the one that signed it",
                ) from error
            told = f"{self.name} cannot be reached: {error}".removesuffix(": ")
            raise UpstreamError("upstream_unreachable", told) from error
        except httpx2.TimeoutException as error:
            told = f"{self.name} has said nothing for {_SILENT_S:.0f} s"
            raise UpstreamError("upstream_timeout", told) from error
        except (httpx2.HTTPError, httpx2.StreamError, httpx2.InvalidURL) as error:
            reason = f"{type(error).__name__}: {error}".removesuffix(": ")
            raise UpstreamError("upstream_broken", f"{self.name} broke off ({reason})") from error


def _sentence(content: bytes) -> str:
    """Return the message in a refusal, in any form that engines and proxies use."""
    try:
        said = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return ""
    for key in ("error", "message", "detail"):
        said = said.get(key, said) if isinstance(said, dict) else said
    words = said if isinstance(said, str) else msgspec.json.encode(said).decode()
    return " ".join("".join(c if c.isprintable() else " " for c in words).split())
