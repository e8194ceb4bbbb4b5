"""The search for a host goes on whatever it meets, and wakes who waits for it."""

import asyncio

import pytest

from lsp_server.host import search as host_search
from lsp_server.host.address import HostAddress
from lsp_server.host.search import HostSearch
from tests.support.held_engine import HeldEngine
from tests.support.running_host import running_host
from tests.support.workspaces import nothing


@pytest.fixture(autouse=True)
def _impatient(monkeypatch):
    monkeypatch.setattr(host_search, "_RETRY_S", 0.01)
    monkeypatch.setattr(host_search, "STANDING_S", 5.0)


def search_below(folder, names, watch=nothing):
    """A search at the first of some names, which a test may take away."""

    async def find():
        return HostAddress("", folder / names[0])

    return HostSearch(find, watch)


@pytest.mark.parametrize("error", [OSError(28, "no space"), RuntimeError("odd"), ValueError("")])
async def test_an_odd_failure_is_told_and_tried_again(tmp_path, error):
    told, failures = [], [error, error]

    async def find():
        if failures:
            raise failures.pop()
        return HostAddress("", tmp_path / "host.sock")

    async with running_host(tmp_path, HeldEngine()):
        search = HostSearch(find, lambda report: told.append(report.problem))
        search.begin()
        while search.state != "ready":
            await asyncio.wait_for(search.ready(), 5)
            await asyncio.sleep(0.005)
        await search.leave()
    assert told[0].message == (str(error) or type(error).__name__)


async def test_a_watcher_that_breaks_does_not_end_the_search(tmp_path):
    def watch(*_):
        raise RuntimeError("a client without manners")

    async with running_host(tmp_path, HeldEngine()):
        search = search_below(tmp_path, ["host.sock"], watch)
        search.begin()
        assert await search.ready() == "ready"
        await search.leave()


async def test_while_no_host_can_be_reached_nobody_waits(tmp_path):
    search = search_below(tmp_path, ["nothing.sock"])
    search.begin()
    assert await search.ready() == "unreachable"
    assert await search.ready() == "unreachable"
    await search.leave()


async def test_a_search_that_was_left_for_another_host_begins_at_once(tmp_path):
    """A wrong address is corrected in the settings: the old search may still be ending."""
    names = ["nothing.sock", "host.sock"]
    async with running_host(tmp_path, HeldEngine()):
        search = search_below(tmp_path, names)
        search.begin()
        assert await search.ready() == "unreachable"
        names.pop(0)
        await search.leave()
        search.begin()
        assert await search.ready() == "ready"
        await search.leave()


async def test_who_changed_a_setting_does_not_wait_for_the_next_attempt(tmp_path, monkeypatch):
    monkeypatch.setattr(host_search, "_LONGEST_RETRY_S", 3600.0)
    names = ["nothing.sock", "host.sock"]
    async with running_host(tmp_path, HeldEngine()):
        search = search_below(tmp_path, names)
        search.begin()
        assert await search.ready() == "unreachable"
        monkeypatch.setattr(host_search, "_RETRY_S", 3600.0)  # of the pauses to come
        names.pop(0)
        search.begin()
        async with asyncio.timeout(5):
            while search.state != "ready":
                await asyncio.sleep(0.005)
        await search.leave()
