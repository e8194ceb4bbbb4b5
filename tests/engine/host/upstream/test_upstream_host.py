"""A host whose engine is an upstream: its clients notice nothing of that, but of its failures."""

import asyncio
import logging
import threading
from contextlib import aclosing, asynccontextmanager

import msgspec
import pytest

from engine.host.upstream.options import UpstreamOptions
from engine.host.upstream.upstream_engine import UpstreamEngine
from engine.request import Chunk, Done, EditTask
from tests.support.fake_upstream import event, fake_upstream, said
from tests.support.polling import eventually
from tests.support.running_host import ask, buffer, running_host

LINES = ("def f(self):", "    return sel")


@asynccontextmanager
async def serving(tmp_path, **options):
    """A fake upstream, and a host before it."""
    with fake_upstream(**options) as upstream:

        def load(progress):
            return UpstreamEngine.load(UpstreamOptions(upstream.url), progress)

        async with running_host(tmp_path, None, load=load) as host:
            await host.ready()
            yield upstream, host


def asked(uri="file:///a.py", client="one"):
    """A completion behind `sel`."""
    return ask(buffer(*LINES, uri=uri), uri=uri, client=client, line=1, character=14)


async def test_text_streams_through(tmp_path):
    async with serving(tmp_path, answer=lambda _: said(" self", ".name", " + x")) as (_, host):
        events = [one async for one in host.complete(asked())]
        status = (await host.client.get("/v1/status")).json()
    *chunks, done = events
    assert isinstance(done, Done)
    assert done.text == "f.name + x"
    assert "".join(one.text for one in chunks if isinstance(one, Chunk)) == done.text
    assert (status["model"], status["state"]) == ("Qwen/Qwen2.5-Coder-7B", "ready")
    assert "drafts from open buffers" in status["lost"]


async def test_edits_and_chats_are_refused_as_the_upstream_has_the_model(tmp_path):
    chat = {"messages": [{"role": "user", "content": "Hello"}]}
    edit = msgspec.structs.replace(asked(), edit=EditTask("Sort.", 0, 1))
    async with serving(tmp_path) as (_, host):
        answers = [
            await host.client.post("/v1/chat/completions", json=chat),
            await host.client.post("/v1/chat/completions", json=chat | {"stream": True}),
            await host.post("/v1/complete", edit),
            await host.post("/v1/complete", msgspec.structs.replace(edit, edit=EditTask())),
        ]
        (card,) = (await host.client.get("/v1/models")).json()["data"]
    assert [one.status_code for one in answers] == [501] * 4
    assert all("another program runs its model" in one.text for one in answers)
    assert not card["capabilities"]["completion_chat"]


async def test_who_stops_to_listen_ends_the_upstreams_work(tmp_path):
    steps = [event(" self"), event(".name"), event("\n"), event("x"), threading.Event()]
    async with serving(tmp_path, answer=lambda _: steps) as (upstream, host):
        async with aclosing(host.complete(asked())) as events:
            await anext(events)
        assert await asyncio.to_thread(upstream.gone.acquire, timeout=20)


@pytest.mark.parametrize(
    ("refused", "status", "code"),
    [
        (429, 503, "upstream_busy"),
        (400, 400, "upstream_refused"),
        (401, 502, "upstream_denied"),
        (404, 502, "upstream_not_found"),
        (502, 502, "upstream_unreachable"),
        (500, 502, "upstream_failed"),
    ],
)
async def test_a_drop_in_client_hears_whose_failure_it_is_and_the_log_has_all(
    tmp_path, caplog, refused, status, code
):
    body = {"prompt": "x", "suffix": "y", "stream": True}
    async with serving(tmp_path) as (upstream, host):
        upstream.refuse("/v1/completions", refused, {"error": "SECRET = x"}, retry_after="7")
        for _ in range(2):
            answer = await host.client.post("/v1/completions", json=body)
            upstream.refuse("/v1/completions", refused, {"error": "SECRET = x"})
        url = upstream.url
    assert answer.status_code == status
    assert ("retry-after" in answer.headers) == (refused == 429)
    message = answer.json()["error"]["message"]
    assert "--upstream" not in message
    assert url not in message
    lines = [line for line in caplog.messages if code in line]
    assert len(lines) == 1
    assert url in lines[0]
    if refused in (400, 500):  # what it says of a request may quote it
        assert "SECRET" not in lines[0]


async def test_who_asks_while_the_upstream_is_not_there_hears_what_the_host_waits_for(
    tmp_path, caplog
):
    caplog.set_level(logging.INFO, "foregram.host")
    with fake_upstream() as upstream:
        upstream.refuse("/v1/models", 503, {"error": {"message": "Loading model"}})

        def load(progress):
            return UpstreamEngine.load(UpstreamOptions(upstream.url), progress)

        async with running_host(tmp_path, None, load=load) as host:
            await eventually(lambda: host.service.engine_thread.loading.now)
            answer = await host.client.post("/v1/completions", json={"prompt": "x"})
            upstream.refusals.clear()
            await host.ready()
    assert answer.status_code == 503
    reason = f"waiting, as the upstream {upstream.url} is not ready (503: Loading model)"
    assert "(waiting, as the upstream cannot be reached" in answer.json()["error"]["message"]
    assert upstream.url not in answer.text
    assert caplog.messages.count(reason) == 1
