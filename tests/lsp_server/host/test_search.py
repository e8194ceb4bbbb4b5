"""The search for a host goes on whatever it meets, and wakes who waits for it."""

import asyncio

import pytest

from lsp_server.host import search as host_search
from lsp_server.host.address import HostAddress
from lsp_server.host.search import HostSearch, Retry
from lsp_server.reasons import Reason
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


async def test_nobody_waits_for_a_host_out_of_reach_and_another_is_searched_for_at_once(tmp_path):
    """A wrong address is corrected in the settings: the old search may still be ending."""
    names = ["nothing.sock", "host.sock"]
    async with running_host(tmp_path, HeldEngine()):
        search = search_below(tmp_path, names)
        search.begin()
        assert [await search.ready() for _ in range(2)] == ["unreachable"] * 2
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


class Asking:
    """Counts how often the editor is told to ask again."""

    def __init__(self) -> None:
        self.num_retries = 0
        self.retry = Retry(self._count)

    def _count(self) -> None:
        self.num_retries += 1

    def answered(
        self, reason: Reason | None, *, waited: bool = False, is_ready: bool = False
    ) -> None:
        self.retry.began()
        self.retry.ended(reason, waited=waited, is_ready=is_ready)


NO_HOST = (
    Reason.CANCELLED,
    Reason.DEVICE_LOST,
    Reason.HOST_FAILED,
    Reason.HOST_LOADING,
    Reason.HOST_UNREACHABLE,
    Reason.SUPERSEDED,
)
FORBIDDEN = (Reason.DISABLED, Reason.SECRET_FILE, Reason.PROSE)
ANSWERED = (None, Reason.MODEL_SAID_NOTHING, Reason.CANCELLED)


@pytest.mark.parametrize(
    ("reason", "is_ready", "num_retries"),
    [
        *((one, False, 1) for one in NO_HOST),
        *((one, False, 0) for one in FORBIDDEN),
        *((one, True, 0) for one in ANSWERED),
    ],
)
def test_what_found_no_host_is_asked_again_once_and_nothing_else(reason, is_ready, num_retries):
    asking = Asking()
    asking.answered(reason, is_ready=is_ready)
    assert asking.num_retries == 0
    asking.retry.host_is_ready()
    asking.retry.host_is_ready()
    assert asking.num_retries == num_retries


def test_a_request_that_waits_brings_what_an_earlier_one_is_owed():
    asking = Asking()
    asking.retry.began()
    asking.answered(Reason.CANCELLED)
    asking.retry.host_is_ready()
    asking.retry.ended(None, waited=True, is_ready=True)
    asking.retry.host_is_ready()
    assert asking.num_retries == 0


def test_a_request_whose_text_changed_while_it_waited_is_asked_again_at_once():
    asking = Asking()
    asking.retry.began()
    asking.retry.host_is_ready()
    asking.retry.ended(Reason.SUPERSEDED, waited=True, is_ready=True)
    assert asking.num_retries == 1


def test_what_ends_every_host_is_not_asked_a_third_time_before_somebody_types():
    asking = Asking()
    for _ in range(3):
        asking.answered(Reason.HOST_UNREACHABLE)
        asking.retry.host_is_ready()
    assert asking.num_retries == 1
    asking.retry.typed()
    asking.retry.host_is_ready()
    assert asking.num_retries == 2


def test_after_a_suggestion_the_next_host_that_ends_is_asked_again():
    asking = Asking()
    for _ in range(2):
        asking.answered(Reason.HOST_UNREACHABLE)
        asking.retry.host_is_ready()
        asking.answered(None, is_ready=True)
    assert asking.num_retries == 2
