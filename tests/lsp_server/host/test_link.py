"""The link to a host that another one takes the place of."""

import asyncio
import socket
from contextlib import asynccontextmanager

import msgspec
import pytest
from lsprotocol import types

from engine.host.protocol import CompleteRequest, Done, Position
from engine.host.server import HostOptions, HostServer
from engine.host.service import CompletionService
from lsp_server.documents.document import Snapshot
from lsp_server.documents.documents import Documents
from lsp_server.host.daemon import ensure_host
from lsp_server.host.link import HostLink
from tests.support.local_host import stub_host
from tests.support.running_host import HeldEngine

pytestmark = pytest.mark.asyncio

URI = "file:///shop/a.py"
REQUEST = CompleteRequest("", "", URI, 0, Position(0, 1))


@asynccontextmanager
async def serving(port, token, folder):
    """A host on a port of this machine, with a token that it has made."""
    service = CompletionService(lambda _: HeldEngine())
    server = HostServer(service, HostOptions(port=port, token=token, token_folder=folder))
    task = asyncio.create_task(server.run())
    while folder.port_token("127.0.0.1", port) != token or service.state != "ready":
        await asyncio.sleep(0.005)
    yield
    server.stop()
    await task


async def test_a_host_that_was_started_anew_is_asked_with_its_new_token():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    documents = Documents()
    documents.open(types.TextDocumentItem(URI, "python", 1, "x"))
    snapshot = documents.snapshot(URI)
    assert isinstance(snapshot, Snapshot)
    with stub_host() as stub:
        settings = msgspec.structs.replace(stub.settings, host_url=f"http://localhost:{port}")
        link = HostLink(
            documents,
            lambda: ensure_host(settings),
            may_send=lambda _: True,
            path_of=lambda _: "a.py",
            watch=lambda *_: None,
        )

        async def last_event():
            *_, last = [one async for one in link.complete(REQUEST, snapshot)]
            return last

        async with serving(port, "the first token", stub.folder):
            link.connect()
            assert isinstance(await last_event(), Done)
        async with serving(port, "the second token", stub.folder):
            assert isinstance(await last_event(), Done)
            await link.leave()
