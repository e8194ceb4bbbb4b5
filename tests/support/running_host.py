"""A real host on a real socket, with an engine under the test's control."""

import asyncio
import ssl
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx2
import msgspec

from engine.host.compat.apis import DEFAULT, NAMES
from engine.host.options import HostOptions
from engine.host.protocol import (
    PROTOCOL_HEADER,
    PROTOCOL_VERSION,
    BufferSync,
    CompleteEvent,
    CompleteRequest,
    Position,
    Status,
)
from engine.host.quotas import QuotaKeeper
from engine.host.runtime import RuntimeFolder
from engine.host.server import HostServer
from engine.host.service import CompletionService
from lsp_server.host.address import HostAddress
from tests.support.ports import free_port

TOKEN = "a-token-for-this-test"


@dataclass
class RunningHost:
    server: HostServer
    service: CompletionService
    client: httpx2.AsyncClient

    @property
    def url(self) -> str:
        """The address for other programs' clients."""
        return str(self.client.base_url).rstrip("/")

    @property
    def is_stopping(self) -> bool:
        """Whether the host only finishes its running requests."""
        return self.server.should_exit

    async def ready(self) -> None:
        while self.service.state == "loading":
            await asyncio.sleep(0.005)

    async def post(
        self, path: str, message: msgspec.Struct, headers: dict[str, str] | None = None
    ) -> httpx2.Response:
        return await self.client.post(path, content=msgspec.json.encode(message), headers=headers)

    async def complete(self, message: CompleteRequest) -> AsyncGenerator[CompleteEvent]:
        content = msgspec.json.encode(message)
        async with self.client.stream("POST", "/v1/complete", content=content) as response:
            assert response.status_code == 200, await response.aread()
            async for line in response.aiter_lines():
                yield msgspec.json.decode(line, type=CompleteEvent)

    async def status(self, client: str = "", headers: dict[str, str] | None = None) -> Status:
        """Return the status as a client sees it, with other headers than this one's if given."""
        page = await self.client.get("/v1/status", params={"client": client}, headers=headers)
        return msgspec.json.decode(page.content, type=Status)

    async def answered(self, message: CompleteRequest) -> list[CompleteEvent]:
        return [event async for event in self.complete(message)]


@asynccontextmanager
async def running_host(
    folder: Path | None,
    engine: Any,
    *,
    token: str | None = None,
    idle_exit_s: float | None = None,
    load: Callable[[Any], Any] | None = None,
    requested_model: str = "",
    limits: QuotaKeeper | None = None,
    token_file: Path | None = None,
    apis: str = DEFAULT,
    record: RuntimeFolder | None = None,
    options: HostOptions | None = None,
) -> AsyncIterator[RunningHost]:
    """Serve `engine` on a socket in `folder`, or on a port, or as `options` say.

    The client has `token`, or that of the options.
    """
    service = CompletionService(load or (lambda _: engine), requested_model, limits)
    place: dict[str, Any] = {"socket": folder / "host.sock"} if folder else {"port": free_port()}
    options = options or HostOptions(
        **place, token=token, token_file=token_file, idle_exit_s=idle_exit_s, apis=apis
    )
    server = HostServer(service, options, record)
    task = asyncio.create_task(server.serve())
    cert, socket = options.tls_cert, options.socket
    verify = ssl.create_default_context(cafile=cert) if cert else True
    transport = httpx2.AsyncHTTPTransport(uds=str(socket) if socket else None, verify=verify)
    host_name = "host" if socket else f"{options.address}:{options.port}"
    url = f"{'https' if cert else 'http'}://{host_name}"
    async with httpx2.AsyncClient(
        transport=transport, base_url=url, headers=headers_with(options.token), timeout=20
    ) as client:
        await _answers(client, task)
        host = RunningHost(server, service, client)
        if load is None:
            await host.ready()
        yield host
    server.stop()
    await task


@asynccontextmanager
async def listening(
    answer: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]],
) -> AsyncIterator[HostAddress]:
    """Yield a socket that hangs up on each connection after `answer`."""
    writers: list[asyncio.StreamWriter] = []

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        with suppress(ConnectionError, EOFError):  # the client may leave first
            await answer(reader, writer)
        writer.close()

    with TemporaryDirectory(dir="/tmp") as folder:  # pytest's folder may be too long for a socket
        address = HostAddress("", Path(folder) / "host.sock")
        async with await asyncio.start_unix_server(connected, address.socket_path):
            yield address
            for writer in writers:
                writer.transport.abort()


def dropped_in_host(engine: Any) -> AbstractAsyncContextManager[RunningHost]:
    """Serve all drop-in APIs on a port, with a token, for other programs' clients."""
    return running_host(None, engine, token=TOKEN, apis=",".join(NAMES))


def engine_after(may_load: threading.Event, engine: Any) -> Callable[[Any], Any]:
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


def headers_with(token: str | None = None) -> dict[str, str]:
    ours = {"content-type": "application/json", PROTOCOL_HEADER: str(PROTOCOL_VERSION)}
    return ours | ({"authorization": f"Bearer {token}"} if token else {})


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
