"""llama.vscode's requests to a server while a person types, and the text it shows."""

import asyncio
import json
import os
import random

import httpx2
import pytest
import pytest_asyncio

from tests.bench.simulated.llama_vim.ring import Ring
from tests.bench.simulated.llama_vscode.answers import Answers, Window, lines_of, shown_of
from tests.bench.simulated.llama_vscode.sitting import LlamaVscodeSitting
from tests.bench.simulated.person import Action
from tests.bench.simulated.screen import Screen
from tests.bench.simulated.traces import Trace

TRACE = Trace("a", "a.py", "def f():", "\n    ", "return x", "\nx = f()\n", ())


class Server:
    def __init__(self):
        self.texts = [""]
        self.asked = []
        self.may_answer = asyncio.Event()
        self.may_answer.set()

    async def __call__(self, request):
        if request.url.path == "/slots":
            return httpx2.Response(200, json=[{"is_processing": False}])
        body = json.loads(request.content)
        self.asked.append(body)
        await self.may_answer.wait()
        timings = {"predicted_n": 4, "prompt_ms": 1000, "predicted_ms": 500}
        answers = [{"content": text, "timings": timings} for text in self.texts]
        return httpx2.Response(200, json=answers if body["n_predict"] else {})


@pytest.fixture
def server():
    return Server()


@pytest_asyncio.fixture
async def sitting(server):
    draw = random.Random(1)  # noqa: S311 - which lines are a chunk
    transport = httpx2.MockTransport(server)
    async with httpx2.AsyncClient(transport=transport, base_url="http://llama") as http:
        sitting = LlamaVscodeSitting(http, os.getpid(), TRACE, Ring(draw))
        await sitting.begin()
        server.asked.clear()
        yield sitting
        await sitting.effort()


def watched(sitting):
    screen = Screen(lambda: 0.0, TRACE.target)
    sitting.watch(screen)
    return screen


def press(sitting, screen, key):
    screen.write(key)
    sitting.press(Action("key", key))


async def until(holds):
    while not holds():
        await asyncio.sleep(0)


@pytest.mark.asyncio
async def test_each_request_asks_for_three_texts_and_the_first_is_shown(sitting, server):
    server.texts = ["    return x", "    return y"]
    screen = watched(sitting)
    await until(lambda: screen.ghost.text)
    assert screen.ghost.text == "return x"
    body = server.asked[0]
    assert (body["input_prefix"], body["prompt"], body["n_cmpl"]) == ("def f():\n", "", 3)
    assert (body["input_suffix"], body["t_max_predict_ms"]) == ("\nx = f()\n\n", 500)


@pytest.mark.asyncio
async def test_the_text_behind_a_shown_one_is_asked_for_and_what_is_typed_along_is_known(
    sitting, server
):
    server.texts = ["    return x"]
    screen = watched(sitting)
    await until(lambda: len(server.asked) == 2)
    assert server.asked[1]["prompt"] == "    return x"
    await until(lambda: not sitting._jobs)
    press(sitting, screen, "r")
    await until(lambda: not sitting._jobs)
    assert screen.ghost.text == "eturn x"
    assert len(server.asked) == 2
    effort = await sitting.effort()
    assert effort.tokens == 4 * effort.requests


@pytest.mark.asyncio
async def test_a_later_key_waits_for_the_running_request_and_drops_its_text(sitting, server):
    server.may_answer.clear()
    screen = watched(sitting)
    await until(lambda: server.asked)
    press(sitting, screen, "r")
    await asyncio.sleep(0)
    assert len(server.asked) == 1
    server.texts = ["eturn x"]
    server.may_answer.set()
    await until(lambda: screen.ghost.text)
    assert server.asked[1]["prompt"] == "    r"
    assert [one.text for one in screen.suggestions] == ["eturn x"]


@pytest.mark.parametrize(
    ("text", "document", "shown"),
    [
        ("x\n\n", "|\ny\n", "x"),
        ("y", "|\ny\n", None),
        ("\ny", "a|\ny\n", None),
        ("x)", "f(|)\ny\n", "x"),
        ("x\nz", "f(|)\ny\n", "x"),
        ("y\nz = 1", "|\n\ny\nz = 1\n", None),
        ("y\nz = 2", "|\n\ny\nz = 1\n", "y\nz = 2"),
        ("\n", "|\ny\n", None),
    ],
)
def test_what_only_repeats_the_document_is_not_shown(text, document, shown):
    before, _, after = document.partition("|")
    row, column = before.count("\n"), len(before.rpartition("\n")[2])
    assert shown_of(lines_of(text), (before + after).split("\n"), row, column) == shown


def test_an_answer_is_found_behind_its_typed_beginning_in_the_line():
    answers, lines = Answers(), ["x = ", ""]
    answers.keep(Window.at(lines, 0, 4), ["foo()", "bar()"])
    assert answers.find(Window.at(["x = fo", ""], 0, 6)) == ("o()",)
    assert answers.find(Window.at(["x = z", ""], 0, 5)) is None
