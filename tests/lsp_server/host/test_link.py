"""The link to a host that another one takes the place of."""

import asyncio
import socket
from contextlib import asynccontextmanager

import msgspec
import pytest
from lsprotocol import types

from engine.host.protocol import CompleteRequest, Done, Position, RepositorySnippet
from engine.host.server import HostOptions, HostServer
from engine.host.service import CompletionService
from lsp_server.documents.document import Snapshot
from lsp_server.documents.documents import Documents
from lsp_server.host.address import HostAddress
from lsp_server.host.daemon import ensure_host
from lsp_server.host.link import HostLink
from tests.support.local_host import stub_host
from tests.support.running_host import HeldEngine, running_host

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


async def test_what_a_request_shows_of_other_files_is_asked_when_it_goes_out(tmp_path):
    """While it waited for its host, a file may have become secret."""
    documents, engine, states = Documents(), HeldEngine(), list[str]()
    documents.open(types.TextDocumentItem(URI, "python", 1, "x"))
    snapshot = documents.snapshot(URI)
    assert isinstance(snapshot, Snapshot)

    async def find():
        return HostAddress("", tmp_path / "host.sock")

    async def shown():
        states.append(link.state)
        return (RepositorySnippet("b.py", "b = 1"),)

    async with running_host(tmp_path, engine):
        link = HostLink(
            documents,
            find,
            may_send=lambda _: True,
            path_of=lambda _: "a.py",
            watch=lambda *_: None,
        )
        link.connect()
        assert link.state != "ready"
        assert [one async for one in link.complete(REQUEST, snapshot, shown)]
        await link.leave()
    assert states == ["ready"]
    assert [one.text for one in engine.requests[-1].repository] == ["b = 1"]
