"""A real host on a real socket, with an engine that a test holds in its hands."""

import asyncio
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import httpx2
import msgspec

from engine import (
    CompletionChunk,
    CompletionRequest,
    CompletionResult,
    CompletionStats,
    FinishReason,
)
from engine.completer import EngineUsage
from engine.host.compat.dialects import Spoken
from engine.host.options import HostOptions
from engine.host.protocol import (
    PROTOCOL_HEADER,
    PROTOCOL_VERSION,
    BufferSync,
    CompleteEvent,
    CompleteRequest,
    Position,
)
from engine.host.quotas import QuotaKeeper
from engine.host.server import HostServer
from engine.host.service import CompletionService
from engine.request import ClosedBuffers
from tests.support.fake_engine import INFO


@dataclass
class HeldEngine:
    """Says `words`, one a step; a step waits for `permits` where a test sets `is_held`."""

    words: tuple[str, ...] = ("one ", "two ", "three")
    is_held: bool = False
    ending: FinishReason = FinishReason.END_TOKEN
    permits: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    requests: list[CompletionRequest] = field(default_factory=list)
    began: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    ended: list[FinishReason] = field(default_factory=list)
    forgotten: list[ClosedBuffers] = field(default_factory=list)
    info = INFO
    pool_tokens = 17
    kv_bytes = 1024
    is_closed = False

    max_sequences = 1

    def run(self, admit: Callable[[], Sequence[Any]]) -> None:
        while running := admit():
            for one in running:
                one.advance()

    def sequence(
        self, request: CompletionRequest, *, on_chunk, is_cancelled, on_end, is_prefill
    ) -> "Told":
        if is_prefill:
            return Told(self.prefilling(request), on_end)
        return Told(self.completing(request, on_chunk=on_chunk, cancelled=is_cancelled), on_end)

    def completing(
        self,
        request: CompletionRequest,
        *,
        on_chunk: Callable[[CompletionChunk], None],
        cancelled: Callable[[], bool],
    ) -> Generator[None, None, CompletionResult]:
        self.requests.append(request)
        self.began.release()
        said, reason = "", self.ending
        for word in self.words:
            while self.is_held and not cancelled() and not self.permits.acquire(timeout=0.01):
                pass
            if cancelled():
                reason = FinishReason.CANCELLED
                break
            said += word
            on_chunk(CompletionChunk(word))
            yield
        self.ended.append(reason)
        shown = tuple(buffer.path for buffer in request.open_buffers)
        stats = CompletionStats(
            *(len(said.split()), 3, 6, 100, 90, 5.0, 7.0, {"model": 3}),
            neighbour_tokens=10 * len(shown),
            neighbours=shown,
            num_open=len(shown),
            repository_tokens=7 * len(request.repository),
            repository=tuple(one.path for one in request.repository),
        )
        return CompletionResult(said, (1, 2, 3), reason, stats)

    def prefilling(self, request: CompletionRequest) -> Generator[None, None, CompletionResult]:
        self.requests.append(request)
        yield
        stats = CompletionStats(0, 0, 0, 100, 90, 5.0, 0.0, {})
        return CompletionResult("", (), FinishReason.CONTEXT_FULL, stats)

    def usage_of(self, principal: str) -> EngineUsage:
        return EngineUsage(self.pool_tokens, self.kv_bytes)

    def forget(self, closed: ClosedBuffers) -> None:
        self.forgotten.append(closed)

    def close(self) -> None:
        self.is_closed = True


@dataclass(eq=False)
class Told:
    """A sequence of an engine without a model: a step of it is one turn of `work`."""

    work: Generator[None, None, CompletionResult]
    on_end: Callable[["Told"], None]
    is_done: bool = False
    ended: CompletionResult | None = None
    error: Exception | None = None

    def advance(self) -> None:
        try:
            next(self.work)
        except StopIteration as end:
            self._end(end.value, None)
        except Exception as error:  # noqa: BLE001 - as the engine's own sequences do
            self._end(None, error)

    def result(self) -> CompletionResult:
        if self.error is not None:
            raise self.error
        assert self.ended is not None
        return self.ended

    def _end(self, ended: CompletionResult | None, error: Exception | None) -> None:
        self.is_done, self.ended, self.error = True, ended, error
        self.on_end(self)


@dataclass
class RunningHost:
    """A host that serves, and a client of it."""

    server: HostServer
    service: CompletionService
    client: httpx2.AsyncClient

    @property
    def is_stopping(self) -> bool:
        """Whether the host answers what is under way and nothing else."""
        return self.server._server.should_exit

    async def ready(self) -> None:
        """Wait until the engine is loaded."""
        while self.service.state == "loading":
            await asyncio.sleep(0.005)

    async def post(self, path: str, message: msgspec.Struct) -> httpx2.Response:
        return await self.client.post(path, content=msgspec.json.encode(message))

    async def complete(self, message: CompleteRequest) -> AsyncGenerator[CompleteEvent]:
        """The events of a completion."""
        content = msgspec.json.encode(message)
        async with self.client.stream("POST", "/v1/complete", content=content) as response:
            assert response.status_code == 200, await response.aread()
            async for line in response.aiter_lines():
                yield msgspec.json.decode(line, type=CompleteEvent)


@asynccontextmanager
async def running_host(
    folder: Path,
    engine: Any,
    *,
    token: str | None = None,
    idle_exit_s: float | None = None,
    load: Callable[[Any], Any] | None = None,
    on_served: Callable[[], None] = lambda: None,
    requested_model: str = "",
    limits: QuotaKeeper | None = None,
    token_file: Path | None = None,
    apis: Spoken | None = None,
) -> AsyncIterator[RunningHost]:
    """Serve `engine` on a socket in `folder`; of a `token_file`, the client has the `token`."""
    path = folder / "host.sock"
    service = CompletionService(load or (lambda _: engine), requested_model, limits)
    options = HostOptions(socket=path, token=token, token_file=token_file, idle_exit_s=idle_exit_s)
    if apis is not None:
        options = replace(options, apis=apis)
    server = HostServer(service, options, on_served)
    task = asyncio.create_task(server.run())
    headers = {"content-type": "application/json", PROTOCOL_HEADER: str(PROTOCOL_VERSION)}
    if token:
        headers["authorization"] = f"Bearer {token}"
    transport = httpx2.AsyncHTTPTransport(uds=str(path))
    async with httpx2.AsyncClient(
        transport=transport, base_url="http://host", headers=headers, timeout=20
    ) as client:
        await _answers(client, task)
        host = RunningHost(server, service, client)
        if load is None:
            await host.ready()
        yield host
    server.stop()
    await task


def engine_after(may_load: threading.Event, engine: Any) -> Callable[[Any], Any]:
    """A host's way to its engine: it takes for as long as a test wants."""

    def load(_progress: Any) -> Any:
        may_load.wait(20)
        return engine

    return load


async def _answers(client: httpx2.AsyncClient, task: asyncio.Task[None]) -> None:
    while not task.done():
        with suppress(httpx2.TransportError):
            await client.get("/health")
            return
        await asyncio.sleep(0.005)
    await task


def buffer(*lines: str, uri: str = "file:///a.py", version: int = 1) -> BufferSync:
    return BufferSync(uri, uri.removeprefix("file:///"), "python", version, lines=lines)


def ask(
    *sync: BufferSync,
    client: str = "one",
    uri: str = "file:///a.py",
    version: int = 1,
    line: int = 0,
    character: int = 0,
    **options: Any,
) -> CompleteRequest:
    return CompleteRequest(
        client, "/home/ada/shop", uri, version, Position(line, character), sync=sync, **options
    )
