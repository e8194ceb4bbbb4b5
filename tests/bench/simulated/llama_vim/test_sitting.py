"""llama.vim's requests to a server while a person types, and the text it shows."""

import asyncio
import json
import os
import random

import httpx2
import pytest
import pytest_asyncio

from tests.bench.simulated.llama_vim.ring import Ring
from tests.bench.simulated.llama_vim.sitting import LlamaVimSitting
from tests.bench.simulated.person import Action
from tests.bench.simulated.screen import Screen
from tests.bench.simulated.traces import Trace
from tests.support.polling import ServerError

pytestmark = pytest.mark.asyncio

TRACE = Trace("a", "a.py", "def f():", "\n    ", "return x", "\nx = f()\n", ())


class Server:
    def __init__(self):
        self.text = ""
        self.asked = []
        self.may_answer = asyncio.Event()
        self.may_answer.set()
        self.refusal = None

    async def __call__(self, request):
        if self.refusal is not None:
            return self.refusal
        if request.url.path == "/slots":
            return httpx2.Response(200, json=[{"is_processing": False}])
        body = json.loads(request.content)
        self.asked.append(body)
        await self.may_answer.wait()
        if not body["n_predict"]:
            return httpx2.Response(200, json={})
        timings = {"timings/predicted_n": 4, "timings/prompt_ms": 1000, "timings/predicted_ms": 500}
        return httpx2.Response(200, json={"content": self.text, **timings})

    async def wait_for(self, count):
        while len(self.asked) < count:
            await asyncio.sleep(0)


@pytest.fixture
def server():
    return Server()


@pytest_asyncio.fixture
async def unbegun(server):
    draw = random.Random(1)  # noqa: S311 - which lines are a chunk
    transport = httpx2.MockTransport(server)
    async with httpx2.AsyncClient(transport=transport, base_url="http://llama") as http:
        yield LlamaVimSitting(http, os.getpid(), TRACE, Ring(draw))


@pytest_asyncio.fixture
async def sitting(unbegun, server):
    await unbegun.begin()
    server.asked.clear()
    yield unbegun
    await unbegun.effort()


def watched(sitting):
    screen = Screen(lambda: 0.0, TRACE.target)
    sitting.watch(screen)
    return screen


async def shown(screen):
    while not screen.ghost.text:
        await asyncio.sleep(0)
    return screen.ghost.text


async def test_a_key_asks_for_a_short_text_where_nothing_is_shown(sitting, server):
    watched(sitting)
    await server.wait_for(1)
    (body,) = server.asked
    assert (body["input_prefix"], body["prompt"]) == ("def f():\n", "")
    assert (body["input_suffix"], body["t_max_predict_ms"]) == ("\nx = f()\n\n", 250)


async def test_what_is_shown_is_asked_on_behind(sitting, server):
    server.text = "    return x"
    assert await shown(watched(sitting)) == "return x"
    await server.wait_for(2)
    second = server.asked[1]
    assert (second["prompt"], second["t_max_predict_ms"]) == ("    return x", 1000)


async def test_a_request_that_runs_is_not_cancelled_and_the_next_one_waits(sitting, server):
    server.may_answer.clear()
    screen = watched(sitting)
    await server.wait_for(1)
    for key in "re":
        screen.write(key)
        sitting.press(Action("key", key))
    assert len(server.asked) == 1
    server.may_answer.set()
    await server.wait_for(2)
    assert server.asked[1]["prompt"] == "    re"


async def test_what_is_known_is_shown_with_the_key_and_asks_nothing(sitting, server):
    server.text = "    return x"
    screen = watched(sitting)
    await shown(screen)
    await server.wait_for(2)
    screen.write("r")
    sitting.press(Action("key", "r"))
    assert screen.ghost.text == "eturn x"
    assert screen.suggestions[-1].text == "return x"


REFUSALS = {
    "refuses /infill .status 501.: no FIM tokens": httpx2.Response(501, text="no\n FIM tokens"),
    "without a text": httpx2.Response(200, json={"error": "no"}),
    "without JSON": httpx2.Response(200, text="<html>"),
}


@pytest.mark.parametrize(("said", "refusal"), REFUSALS.items(), ids=["status", "text", "json"])
async def test_a_server_that_refuses_saves_nobody_nothing(unbegun, server, said, refusal):
    server.refusal = refusal
    with pytest.raises(ServerError, match=said):
        await unbegun.begin()


async def test_what_a_request_fails_with_ends_the_sitting(unbegun, server):
    await unbegun.begin()
    server.refusal = httpx2.Response(500, json={})
    watched(unbegun)
    while unbegun._jobs:
        await asyncio.sleep(0)
    with pytest.raises(ServerError, match="status 500"):
        unbegun.press(Action("key", "r"))
    with pytest.raises(ServerError, match="status 500"):
        await unbegun.effort()
