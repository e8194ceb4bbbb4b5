"""The host's HTTP routes: each takes a message, calls the service, and answers with a message."""

import asyncio
import os
import resource
import sys
import time
from collections.abc import AsyncIterator, Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import msgspec
from litestar import Litestar, MediaType, Request, Response, get, post
from litestar.exceptions import HTTPException
from litestar.openapi import OpenAPIConfig
from litestar.params import JSONBody
from litestar.response import Stream

from engine.errors import ConfigurationError
from engine.host.buffers import BadRangeError, VersionConflictError
from engine.host.made import UnknownCompletionError
from engine.host.protocol import (
    MAX_BODY_BYTES,
    PROTOCOL_VERSION,
    CloseRequest,
    CompleteEvent,
    CompleteRequest,
    Conflict,
    Feedback,
    Problem,
    Status,
    SyncRequest,
)
from engine.host.service import CompletionService, NotReadyError

_STATM = Path("/proc/self/statm")  # in pages: all, resident, ...
_CODES = {400: "bad_request", 404: "not_found", 405: "not_found", 413: "too_large"}


def create_app(service: CompletionService, stop: Callable[[], None]) -> Litestar:
    """Build the application. `stop` ends the server that runs it."""
    began = time.monotonic()

    @post("/v1/complete", status_code=200)
    async def complete(data: JSONBody[CompleteRequest]) -> Stream:
        """Complete at a position; lines of JSON."""
        events = service.complete(data)
        return Stream(_lines(events), media_type="application/x-ndjson")

    @post("/v1/buffers", status_code=204)
    async def sync(data: JSONBody[SyncRequest]) -> None:
        """Hold buffers at their versions."""
        service.buffers.sync(data.client, data.workspace, data.buffers)

    @post("/v1/buffers/close", status_code=204)
    async def close(data: JSONBody[CloseRequest]) -> None:
        """Forget buffers."""
        service.leave(data.client, data.uris)

    @post("/v1/feedback", status_code=204)
    async def feedback(data: JSONBody[Feedback]) -> None:
        """Count what became of a completion."""
        service.hear(data)

    @get("/v1/status")
    async def status() -> Status:
        """Say what the host is doing."""
        return _status(service, time.monotonic() - began)

    @post("/v1/stop", status_code=202)
    async def stop_host() -> None:
        """End what runs, then the process."""
        asyncio.get_running_loop().call_soon(stop)

    @get("/health")
    async def health() -> Response[dict[str, str]]:
        """Say whether completions are served; open to all."""
        is_ready = service.state == "ready"
        return Response(
            {"status": "ok" if is_ready else service.state}, status_code=200 if is_ready else 503
        )

    @get("/metrics", media_type=MediaType.TEXT)
    async def metrics() -> bytes:
        """Count for Prometheus."""
        memory = {"memory_bytes": memory_bytes()}
        return service.metrics.page(service.gauges() | memory)

    return Litestar(
        route_handlers=[complete, sync, close, feedback, status, stop_host, health, metrics],
        exception_handlers=_HANDLERS,
        request_max_body_size=MAX_BODY_BYTES,
        openapi_config=OpenAPIConfig(title="foregram", version=version("foregram"), path="/docs"),
        logging_config=None,
    )


async def _lines(events: AsyncIterator[CompleteEvent]) -> AsyncIterator[bytes]:
    encode = msgspec.json.Encoder().encode
    try:
        async for event in events:
            yield encode(event) + b"\n"
    finally:
        await events.aclose()  # type: ignore[attr-defined] # it is a generator


def _status(service: CompletionService, uptime_s: float) -> Status:
    info, gauges = service.info, service.gauges()
    return Status(
        protocol=PROTOCOL_VERSION,
        version=version("foregram"),
        state=service.state,
        pid=os.getpid(),
        uptime_s=uptime_s,
        progress=service.progress,
        problem=service.problem,
        model=info.model if info else "",
        device=info.device if info else "",
        dtype=info.dtype if info else "",
        num_running=int(gauges["running"]),
        num_waiting=int(gauges["waiting"]),
        num_clients=int(gauges["clients"]),
        num_buffers=int(gauges["buffers"]),
        pool_tokens=int(gauges["pool_tokens"]),
        kv_bytes=int(gauges["kv_bytes"]),
        memory_mb=memory_bytes() / 1e6,
    )


def memory_bytes() -> float:
    """Resident memory of this process: now on Linux, elsewhere the most it had so far."""
    try:
        return float(int(_STATM.read_text().split()[1]) * resource.getpagesize())
    except OSError:
        unit = 1 if sys.platform == "darwin" else 1024
        return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit)


def _problem(status: int, problem: msgspec.Struct, **headers: str) -> Response[Any]:
    return Response(problem, status_code=status, headers=headers)


def _on_conflict(_: Request[Any, Any, Any], error: VersionConflictError) -> Response[Any]:
    return _problem(409, Conflict("unknown_version", str(error), error.uris))


def _on_not_ready(_: Request[Any, Any, Any], error: NotReadyError) -> Response[Any]:
    return _problem(503, error.problem, **{"Retry-After": "1"})


def _on_bad_value(_: Request[Any, Any, Any], error: Exception) -> Response[Any]:
    return _problem(400, Problem("bad_request", str(error)))


def _on_unknown(_: Request[Any, Any, Any], error: UnknownCompletionError) -> Response[Any]:
    return _problem(404, Problem("unknown_completion", f"there is no completion {error}"))


def _on_http(_: Request[Any, Any, Any], error: HTTPException) -> Response[Any]:
    details = "; ".join(
        ": ".join(str(part[key]) for key in ("key", "message") if key in part)
        for part in (error.extra if isinstance(error.extra, list) else [])
    )
    status = error.status_code
    message = f"{error.detail} ({details})" if details else error.detail
    return _problem(status, Problem(_CODES.get(status, "refused"), message))


_HANDLERS: Any = {
    VersionConflictError: _on_conflict,
    NotReadyError: _on_not_ready,
    BadRangeError: _on_bad_value,
    ConfigurationError: _on_bad_value,
    UnknownCompletionError: _on_unknown,
    HTTPException: _on_http,
}
