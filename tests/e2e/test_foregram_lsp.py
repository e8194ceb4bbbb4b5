"""`foregram lsp` in a process of its own, with a host of its own, on the offline model."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from lsprotocol import types
from pygls.exceptions import JsonRpcException

from engine.host.protocol import Status
from engine.host.runtime import RuntimeFolder
from lsp_server.host.address import host_address
from lsp_server.settings import load_settings
from tests.support.editor import editor
from tests.support.sources import BEGUN

# The first start on a machine converts the model.
pytestmark = [pytest.mark.model, pytest.mark.timeout(400)]

SOURCE = f"{BEGUN}    for item in items:\n        |\n    return total\n"
NUM_KEYS = 200
PROGRESS = types.ClientCapabilities(window=types.WindowClientCapabilities(work_done_progress=True))


def text_of(item):
    assert isinstance(item.insert_text, str)
    return item.insert_text


@pytest.fixture(scope="module")
def runtime(tmp_path_factory):
    """The runtime folder of these tests' host, which is stopped at their end."""
    folder = tmp_path_factory.mktemp("run")
    yield RuntimeFolder.open(folder)
    command = [sys.executable, "-m", "lsp_server", "stop", "--force"]
    environ = os.environ | {"FOREGRAM_RUNTIME": str(folder)}
    subprocess.run(command, env=environ, check=True, capture_output=True)


@pytest.fixture(autouse=True)
def _environment(runtime, cache_folder, monkeypatch):
    monkeypatch.setenv("FOREGRAM_CACHE", str(cache_folder))
    monkeypatch.setenv("FOREGRAM_MODEL", "offline")
    monkeypatch.setenv("FOREGRAM_RUNTIME", str(runtime.path))


async def first_items(shown):
    while not (items := await shown.items()):
        assert (await shown.reasons())[-1] == "host_loading"
    return items


async def told(path):
    async with host_address(load_settings().settings).client() as client:
        return (await client.get(path)).content


async def host_status():
    return msgspec.json.decode(await told("/v1/status"), type=Status)


def resident_mb(pid):
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


async def test_ghost_text_is_typed_along_accepted_and_counted():
    async with editor(capabilities=PROGRESS) as shown:
        shown.open(SOURCE)
        (item,) = await first_items(shown)
        text = text_of(item)
        assert text.startswith("total += item.weight")
        assert shown.progress[:2] == ["create", "begin"]
        for typed in text[:5]:
            shown.type(typed)
            (item,) = await shown.items()
            assert text == shown.before.rpartition("\n")[2].strip() + text_of(item)
        assert item.command is not None
        await shown.run(item.command.command, *(item.command.arguments or ()))
    page = (await told("/metrics")).decode()  # the last feedback comes as the editor leaves
    assert 'foregram_feedback_total{kind="accepted"} 1.0' in page
    assert "foregram_requests_total" in page


@pytest.mark.slow
async def test_five_editors_at_once_share_one_host(runtime):
    async with asyncio.TaskGroup() as group:
        for number in range(5):
            group.create_task(_completes(f"file:///shop/inventory_{number}.py"))
    starts = [line for line in runtime.log.read(200) if "is loaded" in line]
    assert len(starts) == 1


async def _completes(uri):
    async with editor(uri=uri) as shown:
        shown.open(SOURCE)
        assert await first_items(shown)


@pytest.mark.slow
async def test_where_a_host_is_killed_in_the_middle_the_next_one_answers():
    # Otherwise a completion ahead of the user could be running.
    async with editor(capabilities=PROGRESS, environ={"FOREGRAM_SPECULATE": "false"}) as shown:
        shown.open(SOURCE)
        assert await first_items(shown)
        shown.type("\n        # a comment about ")
        asked = shown.ask(invoked=True)
        while (await host_status()).num_running == 0:
            await asyncio.sleep(0.002)
        os.kill((await host_status()).pid, signal.SIGKILL)
        assert (await asked).items
        assert shown.progress.count("begin") == shown.progress.count("end") == 1


@pytest.mark.skipif(sys.platform != "linux", reason="resident memory is read from /proc")
@pytest.mark.slow
async def test_a_storm_of_cancelled_requests_is_answered_and_ends_with_the_right_text():
    # A slow machine may lack some of several candidates, so another could come first.
    async with editor(environ={"FOREGRAM_NUM_CANDIDATES": "1"}) as shown:
        shown.open(SOURCE)
        await first_items(shown)
        pending: list[asyncio.Future[Any]] = []
        resident: list[float] = []
        for number in range(NUM_KEYS):
            shown.type("x" if number % 20 else "\n        y")
            pending.append(shown.ask(request_id=f"key {number}"))
            if number:
                shown.cancel(f"key {number - 1}")
            await asyncio.sleep(0.03)  # as fast as keys come
            if number % 10 == 0:
                status = await host_status()
                assert status.num_running <= 1
                resident.append(resident_mb(status.pid))
        # A running step may take 80 MB for its logits; a leak would raise the minimum.
        assert min(resident[-5:]) < min(resident[5:10]) + 100
        answers = await asyncio.wait_for(asyncio.gather(*pending, return_exceptions=True), 30)
        cancelled = [one for one in answers if isinstance(one, JsonRpcException)]
        assert {one.code for one in cancelled} <= {types.LSPErrorCodes.RequestCancelled}
        others = [one for one in answers if one not in cancelled]
        assert all(isinstance(one, types.InlineCompletionList) for one in others)
        shown.type("\n        total += item.w")
        (item, *_) = await shown.items(invoked=True)
        shown.close()
        shown.uri = "file:///shop/other.py"  # the same text in a document without a history
        shown.open_around(shown.before, shown.after)
        (fresh, *_) = await shown.items(invoked=True)
        assert text_of(fresh) == text_of(item)
