"""An answer says which replica gave it, and the figures of all are one page."""

import pytest

pytest.importorskip("ray.serve", reason="the extra `scale` is not installed")

from prometheus_client.parser import text_string_to_metric_families

from engine.host.metrics import Metrics
from engine.host.protocol import REPLICA_HEADER
from engine.host.scale.replica import joined_pages, named


async def receive():
    return {"type": "http.request"}


@pytest.mark.asyncio
async def test_each_answer_has_the_name_once_beside_its_own_headers():
    again = {"type": "http.response.start", "status": 401, "headers": [(b"a", b"b")]}

    async def app(scope, receive, send):
        await send(again)
        await send({"type": "http.response.body", "body": b""})

    sent = []

    async def send(event):
        sent.append(event)

    for _ in range(2):
        await named(app, "one")({"type": "http"}, receive, send)
    head = again | {"headers": [(b"a", b"b"), (REPLICA_HEADER.encode(), b"one")]}
    assert sent == 2 * [head, {"type": "http.response.body", "body": b""}]
    assert again["headers"] == [(b"a", b"b")]


def page(running: float) -> bytes:
    metrics = Metrics()
    metrics.count_request("completed")
    return metrics.page({"running": running})


def test_each_figure_stands_once_for_each_replica():
    joined = joined_pages({"one": page(1), "two": page(2)}).decode()
    families = {one.name: one for one in text_string_to_metric_families(joined)}
    running = {one.labels["replica"]: one.value for one in families["foregram_running"].samples}
    assert running == {"one": 1, "two": 2}
    assert joined.count("# TYPE foregram_requests_total") == 1
    completed = 'foregram_requests_total{outcome="completed",replica="two"} 1.0'
    assert completed in joined.splitlines()


def test_nothing_is_lost_or_changed_of_a_page():
    alone = page(3).decode()
    joined = joined_pages({"one": alone.encode()}).decode()
    bare = joined.replace('replica="one",', "").replace(',replica="one"', "")
    assert bare.replace('{replica="one"}', "") == alone
