"""A simulated editor's requests to a real host, and the text it shows."""

import asyncio
import tempfile
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from engine.request import Buffer
from lsp_server.host.address import HostAddress
from lsp_server.settings import Settings
from tests.bench.simulated.load.crowd import Crowd
from tests.bench.simulated.load.seat import Seat
from tests.bench.simulated.person import Action
from tests.bench.simulated.screen import Screen
from tests.bench.simulated.traces import Trace
from tests.support.held_engine import HeldEngine
from tests.support.polling import ServerError
from tests.support.running_host import running_host

pytestmark = pytest.mark.asyncio

WORDS = "amount = one + two"
TRACE = Trace(
    id="a",
    path="shop/prices.py",
    before="def price(item):",
    approach="\n    ",
    target=f"{WORDS}\n    return amount",
    suffix="\n",
    open_buffers=(Buffer("shop/items.py", "ITEMS = []\n"),),
)


async def until(condition):
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.005)


@asynccontextmanager
async def served(engine, **options):
    with tempfile.TemporaryDirectory(prefix="fg-", dir="/tmp") as name:
        async with running_host(Path(name), engine, **options) as host:
            settings = Settings(cache_folder=Path(name), runtime_folder=Path(name))
            yield host, settings, HostAddress("", Path(name) / "host.sock")


@asynccontextmanager
async def seated(engine):
    """Yield a host, a person who sees the first suggestion of a trace, and the screen."""
    async with served(engine) as (host, settings, address):
        seat = Seat(address, settings)
        await seat.take()
        await seat.turn_to(TRACE)
        screen = Screen(lambda: 0.0, TRACE.target)
        seat.watch(screen)
        await until(lambda: screen.suggestions)
        try:
            yield host, seat, screen
        finally:
            await seat.leave()


def asked(seat):
    return [one for one in seat.log if not one.is_ahead]


async def test_a_text_that_is_typed_along_is_not_asked_for_again():
    async with seated(HeldEngine(words=(WORDS,))) as (_, seat, screen):
        assert screen.ghost.text == WORDS
        for key in "am":
            screen.write(key)
            seat.press(Action("key", key))
            await asyncio.sleep(0)
        await until(lambda: screen.ghost.text == WORDS[2:])
        assert [one.outcome for one in asked(seat)] == ["answered"]


async def test_what_follows_a_suggestion_is_computed_ahead_and_shown_once_that_is_accepted():
    async with seated(HeldEngine(words=(TRACE.target,))) as (host, seat, screen):
        await until(lambda: not seat.is_waiting and len(seat.log) == 2)
        screen.write(TRACE.target)
        seat.press(Action("all", TRACE.target))
        await until(lambda: len(screen.suggestions) == 2)
        assert len(asked(seat)) == 1
        for told in (b'feedback_total{kind="accepted"} 1', b'feedback_total{kind="shown"} 2'):
            await until(lambda told=told: told in host.service.metrics.page({}))


async def test_the_host_holds_the_files_of_the_trace_until_the_person_leaves():
    engine = HeldEngine()
    async with served(engine) as (host, settings, address):
        seat = Seat(address, settings)
        await seat.take()
        await seat.turn_to(TRACE)
        seat.watch(Screen(lambda: 0.0, TRACE.target))
        await until(lambda: engine.requests)
        assert engine.requests[0].path == TRACE.path
        assert [one.path for one in engine.requests[0].open_buffers] == ["shop/items.py"]
        await seat.leave()
        assert host.service.gauges()["clients"] == 0


async def test_a_host_without_a_model_is_one_sentence():
    def broken(_progress):
        raise ValueError("no model")

    async with served(None, load=broken) as (_, settings, address):
        with pytest.raises(ServerError, match=r"on /tmp/.*host.sock is failed"):
            await Seat(address, settings).take()


async def test_a_crowd_comes_types_and_leaves():
    async with served(HeldEngine(words=(WORDS,))) as (host, settings, address):
        crowd = Crowd([address] * 3, address, settings, [TRACE], seed=1, active=1.0)
        run = await crowd.type_for(1.5)
        assert len(run.requests) == 3
        assert all(requests for requests in run.requests)
        outcomes = {one.outcome for requests in run.requests for one in requests}
        assert outcomes <= {"answered", "superseded"}
        assert run.late_s
        assert run.memory_mb
        assert host.service.gauges()["clients"] == 0
