"""A person types beside a real `foregram lsp`, whose host gives scripted answers."""

import sys

import pytest

from engine.host.runtime import RuntimeFolder
from engine.request import Buffer
from lsp_server.settings import Settings
from tests.bench.simulated.foregram_side import ForegramSide, foregram_side
from tests.bench.simulated.sides import AssistedTrace
from tests.bench.simulated.traces import Trace
from tests.bench.simulated.typist import Clock, Typist
from tests.support.held_engine import HeldEngine
from tests.support.running_host import running_host

pytestmark = [pytest.mark.asyncio, pytest.mark.e2e]

PROGRAM = [sys.executable, "-m", "lsp_server"]
TRACE = Trace(
    id="a",
    path="shop/prices.py",
    before="def price(item):",
    approach="\n    ",
    target="amount = one + two + three\n    return amount",
    suffix="\n",
    open_buffers=(Buffer("shop/items.py", "ITEMS = []\n"),),
)


class KnowingEngine(HeldEngine):
    def completing(self, request, **how):
        written = request.prefix.rpartition(TRACE.before + TRACE.approach)[2]
        self.words = tuple(TRACE.target.removeprefix(written).splitlines(keepends=True))
        return super().completing(request, **how)


class PatientClock(Clock):
    """A clock a hundred times as fast, on which no key precedes the answer to the last request."""

    def __init__(self, sitting):
        self.sitting = sitting
        super().__init__(100.0)

    async def wait_until(self, due):
        await self.sitting.answered()
        await super().wait_until(due)


@pytest.fixture
def typed(tmp_path):
    async def type_trace(engine, **variables):
        own = Settings(runtime_folder=tmp_path, cache_folder=tmp_path)
        token = RuntimeFolder.open(tmp_path).token()
        folders = {"FOREGRAM_RUNTIME": str(tmp_path), "FOREGRAM_CACHE": str(tmp_path)}
        async with running_host(tmp_path, engine, token=token):
            side = ForegramSide("foregram", PROGRAM, own, folders | variables)
            async with side.sitting(TRACE) as sitting:
                run = await Typist(1, PatientClock(sitting)).type(TRACE, sitting)
                return AssistedTrace(run, await sitting.effort())

    return type_trace


async def test_what_the_server_says_is_shown_taken_and_counted(typed):
    run = await typed(KnowingEngine())
    assert sum(len(key.text) for key in run.typed.keys) == len(TRACE.target)
    assert "all" in {key.kind for key in run.typed.keys}
    assert len(run.typed.keys) < len(run.typed.own_s) / 2
    assert {shown.wrong_chars for shown in run.typed.suggestions} == {0}
    assert run.effort.tokens > 0
    assert run.effort.requests >= len(run.typed.keys)  # more for text shown in part


async def test_a_generation_is_dated_by_the_hosts_times(typed):
    run = await typed(KnowingEngine(), FOREGRAM_SPECULATE="false")
    first = run.typed.suggestions[0]
    assert 0 < first.begun_s < first.request_s  # a hundred of these seconds are a real one


async def test_a_side_has_folders_of_its_own_and_the_users_models(tmp_path):
    user = Settings(runtime_folder=tmp_path / "run", cache_folder=tmp_path / "cache")
    async with foregram_side("before", ["true"], user, {"FOREGRAM_MODEL": "1.5b"}) as side:
        assert side.environ["FOREGRAM_MODEL"] == "1.5b"
        assert side.environ["FOREGRAM_RUNTIME"] == str(side.settings.runtime_folder)
        assert side.settings.runtime_folder != user.runtime_folder
        models = side.settings.cache_folder / "models"
        assert models.resolve() == (user.cache_folder / "models").resolve()
    assert not models.exists()
