"""Clients of npm as their users run them, against a host with a tiny model."""

import asyncio
import functools
import json
import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager

import httpx2
import pytest

from tests.support.editor_parts import part
from tests.support.running_host import TOKEN, dropped_in_host
from tests.support.tiny_models import tiny_engine

pytestmark = pytest.mark.usefixtures("one_thread")

TEXT = "def add(a, b):\r\n    return \r\n\r\nprint(add(1, 2))\r\n"


def in_its_own_thread(test):
    """Run the test on a thread's event loop: Playwright keeps its own in the main thread."""

    @functools.wraps(test)
    def run(**fixtures):
        with ThreadPoolExecutor(1) as thread:
            thread.submit(asyncio.run, test(**fixtures)).result()

    return run


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    return tiny_engine(tmp_path_factory.mktemp("engine"))


@in_its_own_thread
async def test_the_openai_package_lists_completes_streams_and_tells_failures(engine):
    package = part("openai")
    async with dropped_in_host(engine) as host:
        process = await asyncio.create_subprocess_exec(
            *(part("node"), "tests/support/openai_client.mjs", package.parents[2]),
            env={**os.environ, "OPENAI_BASE_URL": f"{host.url}/v1", "OPENAI_API_KEY": TOKEN},
            stdout=asyncio.subprocess.PIPE,
        )
        told, _ = await process.communicate()
        assert process.returncode == 0
    seen = json.loads(told)
    assert seen["models"] == [engine.info.model]
    assert seen["streamed"] == seen["whole"]["choices"][0]["text"] != ""
    assert seen["usage"] == seen["whole"]["usage"]
    assert seen["deltas"] == seen["answered"] != ""
    hole = seen["hole"]["choices"][0]
    assert "".join(hole["logprobs"]["tokens"]) == hole["text"]
    assert seen["refused"].startswith("BadRequestError 400")
    assert "echo" in seen["refused"]
    assert seen["unknown"].startswith("AuthenticationError 401")


class TabbyAgent:
    """Speaks to tabby-agent as Tabby's editors do: lines of JSON with a number each."""

    def __init__(self, process):
        self._process = process
        self._number = 0

    async def call(self, function, *given):
        self._number += 1
        line = json.dumps([self._number, {"func": function, "args": given}])
        self._process.stdin.write(f"{line}\n".encode())
        while True:
            number, answer = json.loads(await self._process.stdout.readline())
            if number == self._number:
                return answer


@asynccontextmanager
async def tabby_agent(folder):
    process = await asyncio.create_subprocess_exec(
        *(part("node"), part("tabby-agent")),
        env={**os.environ, "HOME": str(folder)},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        limit=2**20,
    )
    try:
        yield TabbyAgent(process)
    finally:
        process.kill()
        await process.wait()


@in_its_own_thread
async def test_tabby_agent_connects_completes_and_reports(engine, tmp_path):
    asked = {
        "filepath": "/shop/a.py",
        "language": "python",
        "text": TEXT,
        "position": TEXT.index("return ") + len("return "),
        "manually": True,
    }
    async with dropped_in_host(engine) as host, tabby_agent(tmp_path) as agent:
        server = {"endpoint": host.url, "token": TOKEN}
        properties = {"user": {}, "session": {"client": "a test"}}
        config = {"server": server, "anonymousUsageTracking": {"disable": True}}
        assert await agent.call("initialize", {"config": config, "clientProperties": properties})
        assert await agent.call("getStatus") == "ready"
        found = await agent.call("provideCompletions", asked)
        assert found["choices"]
        event = {"completion_id": found["id"], "choice_index": 0}
        for kind in ("view", "select"):
            assert await agent.call("postEvent", {"type": kind, **event})
        async with httpx2.AsyncClient(headers={"authorization": f"Bearer {TOKEN}"}) as http:
            page = (await http.get(f"{host.url}/metrics")).text
    assert 'foregram_feedback_total{kind="shown"} 1.0' in page
    assert 'foregram_feedback_total{kind="accepted"} 1.0' in page
