"""An answer says which replica gave it."""

import asyncio

from engine.host.protocol import REPLICA_HEADER
from engine.host.scale.named_replica import NamedReplica


async def receive():
    return {"type": "http.request"}


def test_each_answer_has_the_name_beside_its_own_headers():
    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": 401, "headers": [(b"a", b"b")]})
        await send({"type": "http.response.body", "body": b""})

    sent = []

    async def send(event):
        sent.append(event)

    asyncio.run(NamedReplica(app, "one")({"type": "http"}, receive, send))
    start, body = sent
    assert start["headers"] == [(b"a", b"b"), (REPLICA_HEADER.encode(), b"one")]
    assert body == {"type": "http.response.body", "body": b""}


def test_an_answer_that_the_application_sends_again_is_named_once():
    again = {"type": "http.response.start", "status": 200, "headers": []}

    async def app(scope, receive, send):
        await send(again)

    sent = []

    async def send(event):
        sent.append(event)

    for _ in range(2):
        asyncio.run(NamedReplica(app, "one")({"type": "http"}, receive, send))
    assert [event["headers"] for event in sent] == [[(REPLICA_HEADER.encode(), b"one")]] * 2
    assert again["headers"] == []
