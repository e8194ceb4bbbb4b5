"""What the host may not hold any more is withdrawn from it, whatever happens meanwhile."""

import asyncio

import pytest
from lsprotocol import types

from engine.host.protocol import MAX_FEEDBACK, Feedback
from lsp_server.documents.documents import Documents
from lsp_server.host import link as host_link
from lsp_server.host.sync import FeedbackBatch, HostSync
from tests.support.connected import connected
from tests.support.held_engine import HeldEngine

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
    hidden: set[str] = set()
    sync = HostSync(documents, lambda snapshot: snapshot.uri not in hidden, str)
    assert sync.unwanted() == ()
    sync.syncs(documents.snapshot(A))  # the host may have got it, though it did not answer
    assert sync.unwanted() == ()
    hidden.add(B)
    assert sync.unwanted() == (B,)
    assert sync.knows(B)
    sync.closed([B])
    assert sync.unwanted() == ()
    assert not sync.knows(B)
    hidden.clear()
    sent = sync.syncs(documents.snapshot(A))
    assert {buffer.uri for buffer in sent.buffers} == {A, B}


def test_a_document_that_is_closed_is_withdrawn_until_the_host_has_heard_it(documents):
    sync = HostSync(documents, lambda _: True, str)
    sync.taken(sync.syncs(documents.snapshot(A)))
    documents.close(B)
    sync.closed([B])
    sync.forget([B])
    assert sync.unwanted() == (B,)


def test_a_text_that_was_left_behind_by_a_key_is_sent_as_changes_too(documents):
    sync = HostSync(documents, lambda _: True, str)
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
    sync = HostSync(documents, lambda _: True, str)
    sync.taken(sync.syncs(documents.snapshot(A)))
    documents.change(B, 2, [types.TextDocumentContentChangeWholeDocument("\0")])
    assert sync.unwanted() == (B,)


def test_of_many_documents_those_are_judged_that_have_not_been_for_longest(documents):
    judged: list[str] = []

    def may_send(snapshot):
        judged.append(snapshot.uri)
        return True

    sync = HostSync(documents, may_send, str)
    sync.syncs(documents.snapshot(A))
    judged.clear()
    for _ in range(3):
        sync.unwanted(1)
    assert judged == [A, B, A]


def test_another_host_holds_nothing(documents):
    sync = HostSync(documents, lambda _: False, str)
    sync.syncs(documents.snapshot(A))
    sync.leave()
    assert sync.unwanted() == ()


@pytest.mark.asyncio
@pytest.mark.asyncio
async def test_a_neighbour_into_which_a_key_is_pasted_leaves_the_host(tmp_path, monkeypatch):
    monkeypatch.setattr(host_link, "_JUDGE_S", 0.0)
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
        keys = {f"\0{B}\0", f"\0{B}\0next"}
        assert engine.forgotten[0].cache_keys == keys


@pytest.mark.asyncio
@pytest.mark.asyncio
async def test_before_a_request_few_documents_are_judged_and_at_a_pause_all(tmp_path, monkeypatch):
    """Each costs a look at its folders, and nothing else is done meanwhile."""
    monkeypatch.setattr(host_link, "_JUDGE_S", 0.0)
    async with connected(tmp_path, HeldEngine(("return ", "1"))) as editor:
        uris = {f"file:///shop/{number}.py" for number in range(100)}
        for uri in uris:
            editor.open("y = 1\n|", uri)
        editor.open(SOURCE, A)
        assert await editor.texts(uri=A)
        judged, judge = [], editor.link._sync._may_send

        def judging(snapshot):
            judged.append(snapshot.uri)
            return judge(snapshot)

        editor.link._sync._may_send = judging
        editor.type("x", A)
        await editor.ask(uri=A)
        assert 0 < len(judged) < 20
        judged.clear()
        assert await editor.link.retract() == ()
        assert set(judged) == uris | {A}


@pytest.mark.asyncio
@pytest.mark.asyncio
async def test_a_host_that_did_not_hear_is_told_again(tmp_path, monkeypatch):
    engine = HeldEngine(("return ", "1"))
    async with connected(tmp_path, engine) as editor:
        editor.open(SOURCE, A)
        assert await editor.texts(uri=A)
        editor.documents.close(A)
        client = editor.link._search.client
        with monkeypatch.context() as deaf:
            deaf.setattr(editor.link._search, "client", None)
            await editor.link.close_documents([A])
        assert editor.link._search.client is client
        assert editor.host.service.buffers.usage_of().buffers == 1
        assert await editor.link.retract() == (A,)
        assert editor.host.service.buffers.usage_of().buffers == 0


def shown(number):
    return Feedback("", str(number), "shown")


@pytest.fixture
def told():
    return []


@pytest.fixture
def batch(told):
    async def send(feedback):
        told.append(feedback)

    return FeedbackBatch(send)


@pytest.mark.asyncio
async def test_a_request_takes_along_what_waits(batch, told):
    batch.add(shown(1))
    batch.add(shown(2))
    assert batch.take() == (shown(1), shown(2))
    await batch.flush()
    assert told == []


@pytest.mark.asyncio
async def test_without_a_request_it_is_told_after_a_moment(batch, told):
    batch.add(shown(1))
    async with asyncio.timeout(5):
        while not told:
            await asyncio.sleep(0.01)
    assert told == [shown(1)]
    assert batch.take() == ()


@pytest.mark.asyncio
async def test_no_more_waits_than_a_request_may_take_along(batch, told):
    for number in range(MAX_FEEDBACK + 1):
        batch.add(shown(number))
    assert batch.take() == (shown(MAX_FEEDBACK),)
    await batch.flush()
    assert told == [shown(number) for number in range(MAX_FEEDBACK)]


@pytest.mark.asyncio
async def test_who_leaves_tells_what_waits(batch, told):
    batch.add(shown(1))
    await batch.flush()
    assert told == [shown(1)]
