"""What the host may not hold any more is withdrawn from it, whatever happens meanwhile."""

import asyncio
from typing import cast

import pytest
from lsprotocol import types

from engine.host.protocol import MAX_FEEDBACK
from lsp_server.documents.document import Snapshot
from lsp_server.documents.documents import Documents
from lsp_server.host import held_documents
from lsp_server.host.sync import HostSync
from tests.support.connected import connected
from tests.support.held_engine import HeldEngine
from tests.support.workspaces import HeldPermissions, requests_of, workspace_of

A, B = "file:///shop/a.py", "file:///shop/b.py"
SOURCE = "def total(items):\n    |\n"
KEY = "-----BEGIN PRIVATE KEY-----\n"


@pytest.fixture
def documents():
    documents = Documents()
    for uri in (A, B):
        documents.open(types.TextDocumentItem(uri, "python", 1, "x = 1\n"))
    return documents


def test_what_was_sent_is_wanted_as_long_as_it_may_be_sent(documents):
    workspace = workspace_of(documents)
    hidden = cast(HeldPermissions, workspace.permissions).hidden
    sync = HostSync(workspace)
    assert sync.unwanted() == ()
    sync.syncs(documents.snapshot(A))  # the host may have got it, though it did not answer
    assert sync.unwanted() == ()
    hidden.add(B)
    assert sync.unwanted() == (B,)
    assert B in sync
    sync.closed([B])
    assert sync.unwanted() == ()
    assert B not in sync
    hidden.clear()
    sent = sync.syncs(documents.snapshot(A))
    assert {buffer.uri for buffer in sent.buffers} == {A, B}


def test_a_document_that_is_closed_is_withdrawn_until_the_host_has_heard_it(documents):
    sync = HostSync(workspace_of(documents))
    sync.taken(sync.syncs(documents.snapshot(A)))
    documents.close(B)
    sync.closed([B])
    sync.forget([B])
    assert sync.unwanted() == (B,)


def test_a_text_that_was_left_behind_by_a_key_is_sent_as_changes_too(documents):
    sync = HostSync(workspace_of(documents))
    sync.taken(sync.syncs(documents.snapshot(A)))
    at = types.Range(types.Position(0, 0), types.Position(0, 0))
    for version, key in ((2, "a"), (3, "b")):
        change = types.TextDocumentContentChangePartial(range=at, text=key)
        documents.change(A, version, [change])
        if version == 2:
            asked = documents.snapshot(A)
    (buffer,) = sync.syncs(asked).buffers
    assert buffer.lines is None
    assert [splice.lines for splice in buffer.splices] == [("ax = 1",)]


def test_a_document_that_became_binary_is_withdrawn(documents):
    sync = HostSync(workspace_of(documents))
    sync.taken(sync.syncs(documents.snapshot(A)))
    documents.change(B, 2, [types.TextDocumentContentChangeWholeDocument("\0")])
    assert sync.unwanted() == (B,)


def test_of_many_documents_those_are_judged_that_have_not_been_for_longest(documents):
    workspace = workspace_of(documents)
    judged = cast(HeldPermissions, workspace.permissions).asked
    sync = HostSync(workspace)
    sync.syncs(documents.snapshot(A))
    judged.clear()
    for _ in range(3):
        sync.unwanted(1)
    assert judged == [A, B, A]


async def test_a_neighbour_into_which_a_key_is_pasted_leaves_the_host(tmp_path, monkeypatch):
    monkeypatch.setattr(held_documents, "_JUDGE_S", 0.0)
    engine = HeldEngine(("return ", "1"))
    async with connected(tmp_path, engine) as editor:
        editor.open("y = 1\n|", B)
        editor.open(SOURCE, A)
        assert await editor.texts(uri=A)
        assert [buffer.path for buffer in engine.requests[0].open_buffers] == ["b.py"]
        change = types.TextDocumentContentChangeWholeDocument(KEY)
        editor.documents.change(B, 2, [change])
        editor.type("x", A)
        await editor.ask(uri=A)
        assert engine.requests[-1].open_buffers == ()
        assert editor.host.service.buffers.usage_of().buffers == 1
        while not engine.forgotten:
            await asyncio.sleep(0.005)
        assert engine.forgotten[0].keys == {B}
        assert engine.forgotten[0].paths == {"b.py"}
        keys = {f"\0{B}\0{kind}" for kind in ("", "edit")}
        assert engine.forgotten[0].cache_keys == keys


async def test_before_a_request_few_documents_are_judged_and_at_a_pause_all(tmp_path, monkeypatch):
    """Each costs a look at its folders, and nothing else is done meanwhile."""
    monkeypatch.setattr(held_documents, "_JUDGE_S", 0.0)
    async with connected(tmp_path, HeldEngine(("return ", "1"))) as editor:
        uris = {f"file:///shop/{number}.py" for number in range(100)}
        for uri in uris:
            editor.open("y = 1\n|", uri)
        editor.open(SOURCE, A)
        assert await editor.texts(uri=A)
        permissions = editor.link._workspace.permissions
        judged, judge = [], permissions.may_send

        def judging(snapshot):
            judged.append(snapshot.uri)
            return judge(snapshot)

        monkeypatch.setattr(permissions, "may_send", judging)
        editor.type("x", A)
        await editor.ask(uri=A)
        assert 0 < len(judged) < 20
        judged.clear()
        assert await editor.link.documents.retract() == ()
        assert set(judged) == uris | {A}


@pytest.mark.parametrize(
    ("meanwhile", "num_held"),
    [
        pytest.param((), 1, id="nothing happens"),
        pytest.param(("hide",), 0, id="it is hidden"),
        pytest.param(("paste a key",), 0, id="a key is pasted"),
        pytest.param(("close",), 0, id="it is closed"),
        pytest.param(("close", "open"), 0, id="it is opened anew"),
    ],
)
async def test_a_document_that_is_hidden_or_closed_while_it_waits_is_not_sent(
    tmp_path, monkeypatch, meanwhile, num_held
):
    async with connected(tmp_path, HeldEngine()) as editor:
        editor.open(SOURCE, A)
        await editor.link.search.ready()
        snapshot, held = editor.documents.snapshot(A), editor.link.documents
        assert isinstance(snapshot, Snapshot)
        permissions = editor.link._workspace.permissions
        key = types.TextDocumentContentChangeWholeDocument(KEY)
        do = {
            "hide": lambda: monkeypatch.setattr(permissions, "may_send", lambda _: False),
            "paste a key": lambda: editor.documents.change(A, 2, [key]),
            "close": lambda: editor.documents.close(A),
            "open": lambda: editor.open(SOURCE, A),
        }
        async with held.in_step:
            sending = asyncio.create_task(held.bring(snapshot))
            await asyncio.sleep(0)  # until it waits
            for what in meanwhile:
                do[what]()
        await sending
        assert editor.host.service.buffers.usage_of().buffers == num_held
        assert len(held.sync) == num_held


async def test_a_host_that_did_not_hear_is_told_again(tmp_path, monkeypatch):
    engine = HeldEngine(("return ", "1"))
    async with connected(tmp_path, engine) as editor:
        editor.open(SOURCE, A)
        assert await editor.texts(uri=A)
        editor.documents.close(A)
        client = editor.link.search.client
        with monkeypatch.context() as deaf:
            deaf.setattr(editor.link.search, "client", None)
            await editor.link.documents.retract()
        assert editor.link.search.client is client
        assert editor.host.service.buffers.usage_of().buffers == 1
        assert await editor.link.documents.retract() == (A,)
        assert editor.host.service.buffers.usage_of().buffers == 0


async def test_reports_that_no_request_came_after_are_sent_as_the_editor_leaves(tmp_path):
    async with connected(tmp_path, HeldEngine(("return ", "1"))) as editor:
        editor.open(SOURCE, A)
        await editor.ask(A)
        assert editor.link.last is not None
        for told in ("forgotten", editor.link.last[1].id):
            editor.link.tell(told, "accepted")
        await editor.link.leave()
        page = (await editor.host.client.get("/metrics")).text
    assert 'foregram_feedback_total{kind="accepted"} 1.0' in page


async def test_a_request_takes_the_last_reports_along(tmp_path):
    async with connected(tmp_path, HeldEngine(("return ", "1"))) as editor:
        editor.open(SOURCE, A)
        await editor.ask(A)
        for number in range(MAX_FEEDBACK + 1):
            editor.link.tell(str(number), "shown")
        sent = requests_of(editor.link)
        editor.type("x", A)
        await editor.ask(A)
        editor.type("y", A)
        await editor.ask(A)
    told = [[one.completion_id for one in request.feedback] for request in sent]
    assert told == [[str(number) for number in range(1, MAX_FEEDBACK + 1)], []]
