"""The link to a host that another one takes the place of."""

import asyncio
import socket
from contextlib import asynccontextmanager

import msgspec
import pytest
from lsprotocol import types

from engine.host.buffers import ClientId
from engine.host.options import HostOptions
from engine.host.protocol import PROTOCOL_VERSION, REPLICA_HEADER, SESSION_HEADER, Position, Status
from engine.request import Done, Snippet
from lsp_server.documents.anchor import Anchor
from lsp_server.documents.document import Snapshot
from lsp_server.documents.documents import Documents
from lsp_server.host import client as host_client
from lsp_server.host import link as host_link
from lsp_server.host.address import HostAddress
from lsp_server.host.client import HostGoneError, HostRefusedError
from lsp_server.host.daemon import ensure_host
from lsp_server.host.link import HostLink
from lsp_server.host.search import LinkReport
from lsp_server.workspace_files import WorkspaceFiles
from tests.support.connected import URI as URI_A
from tests.support.connected import connected
from tests.support.held_engine import HeldEngine
from tests.support.running_host import listening, running_host
from tests.support.stub_host import stub_host
from tests.support.workspaces import link_of, nothing, requests_of, workspace_of

URI = "file:///shop/a.py"


def opened():
    """Documents, and what is held of the one that is open."""
    documents = Documents()
    documents.open(types.TextDocumentItem(URI, "python", 1, "x"))
    snapshot = documents.snapshot(URI)
    assert isinstance(snapshot, Snapshot)
    return documents, snapshot


def at_end(snapshot):
    return Anchor.of(snapshot, Position(0, 1))


@asynccontextmanager
async def serving(port, token, folder):
    """A host on a port of this machine, with a token that it has made."""
    options = HostOptions(port=port, token=token, token_folder=folder)
    async with running_host(None, HeldEngine(), options=options):
        yield


async def test_a_host_that_was_started_anew_is_asked_with_its_new_token():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    documents, snapshot = opened()
    with stub_host() as stub:
        settings = msgspec.structs.replace(stub.settings, host_url=f"http://localhost:{port}")
        link = link_of(workspace_of(documents), lambda: ensure_host(settings))

        async def last_event():
            *_, last = [one async for one in link.complete(at_end(snapshot))]
            return last

        async with serving(port, "the first token", stub.folder):
            link.search.begin()
            assert isinstance(await last_event(), Done)
        async with serving(port, "the second token", stub.folder):
            assert isinstance(await last_event(), Done)
            await link.leave()


async def test_what_a_request_shows_of_other_files_is_asked_when_it_goes_out(tmp_path):
    """While it waited for its host, a file may have become secret."""
    (documents, snapshot), engine, states = opened(), HeldEngine(), list[str]()

    async def find():
        return HostAddress("", tmp_path / "host.sock")

    async def shown(*_, **__):
        states.append(link.search.state)
        return (Snippet("b.py", "b = 1"),)

    files = WorkspaceFiles(workspace := workspace_of(documents), nothing)
    files.shown = shown  # type: ignore[method-assign] # in place of an index

    async with running_host(tmp_path, engine):
        link = HostLink(workspace, files, find, nothing)
        link.search.begin()
        assert link.search.state != "ready"
        assert [one async for one in link.complete(at_end(snapshot))]
        await link.leave()
    assert states == ["ready"]
    assert [one.text for one in engine.requests[-1].repository] == ["b = 1"]


class Moving:
    """A link to one of several hosts, which a test replaces by another that holds nothing."""

    def __init__(self, folder):
        self.replica, self.documents = "one", Documents()
        self.address = HostAddress("", folder / "host.sock")
        self.open("a.py")
        self.open("b.py")
        self.link = link_of(workspace_of(self.documents), self._find)
        self.link.search.begin()

    def open(self, name):
        self.documents.open(types.TextDocumentItem(f"file:///shop/{name}", "python", 1, "x"))

    async def _find(self):
        return self.address

    async def ask(self, name):
        """Complete in a file."""
        await self.link.search.ready()
        self.link.search.client._http.event_hooks = {"response": [self._name]}
        snapshot = self.documents.snapshot(f"file:///shop/{name}")
        assert isinstance(snapshot, Snapshot)
        return [one async for one in self.link.complete(at_end(snapshot))]

    async def _name(self, response):
        response.headers[REPLICA_HEADER] = self.replica

    def move(self, service):
        """The next request goes to a host that knows nothing of this server."""
        self.replica = "two"
        for client in list(service.buffers.clients):
            service.clients.leave(client, None)


def shown(engine):
    return {buffer.path for buffer in engine.requests[-1].open_buffers}


async def test_another_of_several_hosts_gets_all_documents_under_another_name(tmp_path):
    engine = HeldEngine()
    async with running_host(tmp_path, engine) as host:
        moving = Moving(tmp_path)
        await moving.ask("a.py")
        former = moving.link.documents.known_as
        moving.move(host.service)
        moving.documents.change(URI, 2, [types.TextDocumentContentChangeWholeDocument("x y")])
        await moving.ask("a.py")
        assert shown(engine) == {"file:///shop/b.py"}
        assert moving.link.documents.known_as != former
        await moving.link.leave()


async def test_a_host_that_got_a_document_alone_gets_the_others_with_the_next_request(tmp_path):
    engine = HeldEngine()
    async with running_host(tmp_path, engine) as host:
        moving = Moving(tmp_path)
        await moving.ask("a.py")
        moving.move(host.service)
        moving.open("c.py")  # it is sent whole, so that the other host takes it
        await moving.ask("c.py")
        assert shown(engine) == set()
        await moving.ask("c.py")
        assert shown(engine) == {URI, "file:///shop/b.py"}
        await asyncio.gather(*moving.link._tasks, return_exceptions=True)
        assert host.service.buffers.usage_of().clients == 1, "what the first name left is closed"
        await moving.link.leave()


@pytest.mark.parametrize("said", [b"", b"HTTP/1.1 200 OK\r\ncontent-length: 900\r\n\r\n{"])
async def test_a_host_that_stands_still_is_left_with_a_reason(monkeypatch, said):
    """Nobody answered for 20 s and more, and nothing was said."""
    monkeypatch.setattr(host_link, "_WATCH_S", 0.05)
    monkeypatch.setattr(host_client, "_ANSWER_S", 0.2)
    ready = msgspec.json.encode(Status(PROTOCOL_VERSION, "1", "ready", 1, 1.0))
    answers = [b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(ready), ready)]
    reports: list[LinkReport] = []

    async def answer(reader, writer):
        while await reader.readuntil(b"\r\n\r\n"):
            writer.write(answers.pop() if answers else said)

    async def find():
        return address

    documents, snapshot = opened()
    link = link_of(workspace_of(documents), find, reports.append)
    async with listening(answer) as address, asyncio.timeout(10):
        link.search.begin()
        with pytest.raises(HostGoneError):
            assert [one async for one in link.complete(at_end(snapshot))]
        assert await link.search.ready() == "unreachable"
        await link.leave()
    assert "stopped answering" in reports[-1].problem.message


async def test_a_conflict_has_those_documents_sent_again_that_it_names(tmp_path):
    async with connected(tmp_path, HeldEngine()) as editor:
        editor.open("b = 1\n|", uri="file:///shop/b.py")
        editor.open("x|")
        await editor.ask()
        editor.host.service.buffers.close(ClientId("", editor.link.documents.known_as), [URI_A])
        sent = requests_of(editor.link)
        editor.type("y")
        await editor.ask()
        assert sent[-1].uri == URI_A
        assert [one.uri for one in sent[-1].sync if one.lines] == [URI_A]


async def test_a_host_that_was_lost_and_is_the_same_gets_what_changed(tmp_path):
    async with connected(tmp_path, HeldEngine()) as editor:
        editor.open("b = 1\n|", uri="file:///shop/b.py")
        editor.open("x|")
        await editor.ask()
        client = editor.link.search.client
        assert client is not None
        await editor.link.search.lost(client)
        await editor.link.search.ready()
        sent = requests_of(editor.link)
        editor.type("y")
        await editor.ask()
    assert [[one.lines for one in request.sync] for request in sent] == [[None]]


async def test_a_host_is_not_brought_back_to_a_text_that_it_is_past(tmp_path):
    """A key may come between what is computed ahead and its turn: whole files would go out."""
    async with connected(tmp_path, HeldEngine()) as editor:
        editor.open("x|")
        await editor.ask()
        former = editor.documents.snapshot(URI_A)
        assert isinstance(former, Snapshot)
        editor.type("y")
        await editor.ask()
        with pytest.raises(HostRefusedError, match="newer state"):
            await anext(editor.link.complete(at_end(former)))
        await editor.link.documents.bring(former)
        sent = requests_of(editor.link)
        editor.type("z")
        await editor.ask()
        [[buffer]] = [request.sync for request in sent]
        assert buffer.lines is None


def test_a_workspace_has_a_name_that_tells_nothing_of_it():
    address = HostAddress("a token", url="https://host")
    name = address.session_of("file:///home/ada/shop")
    assert name == address.session_of("file:///home/ada/shop")
    assert name != address.session_of("file:///home/ada/bakery")
    assert name != HostAddress("another", url="https://host").session_of("file:///home/ada/shop")
    assert "ada" not in name
    assert address.client(session=name).headers[SESSION_HEADER] == name
