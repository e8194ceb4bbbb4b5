"""Nobody learns anything of another principal's text: a tiny model, and all that an answer counts."""

import string
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import numpy as np
import pytest

from engine.config import StopRules
from engine.drafting.lookahead import LookaheadDrafter
from engine.host.buffers import ClientId
from engine.host.service import CompletionService
from engine.learning import SweptCosts
from engine.loader import load_engine
from engine.request import Done
from tests.support.polling import eventually
from tests.support.running_host import ask, buffer
from tests.support.tiny_models import save_model, tiny_model

pytestmark = [pytest.mark.usefixtures("one_thread")]

ADA, EVE = "ada", "eve"
BOUNDS = StopRules(max_tokens=6)
NUM_GUESSES = 200


@pytest.fixture
def no_rates(monkeypatch):
    """What holds no text is known to all: how often drafts come true, what a step takes.

    Here it stands still. A host that finds its machine faster than the one before did, as when other
    work has ended, would time its steps again, and verify other numbers of rows.
    """
    monkeypatch.setattr(LookaheadDrafter, "calibrate", lambda *_: None)
    monkeypatch.setattr(SweptCosts, "is_outdated_by", lambda *_: False)


@pytest.fixture(scope="module")
def load(tmp_path_factory):
    """Loads a tiny model, each time with nothing in its memory."""
    folder = save_model(tiny_model("qwen2", seed=4), tmp_path_factory.mktemp("model"))
    cache = tmp_path_factory.mktemp("cache")

    def loaded(_progress=None):
        return load_engine(cache_folder=cache, model=str(folder), threads=1)

    loaded()  # its steps are timed once: all others find the same costs
    return loaded


@asynccontextmanager
async def service_of(load):
    """A host's service, once its model is loaded."""
    service = CompletionService(load)
    service.engine_thread.start()
    await eventually(lambda: service.state != "loading")
    try:
        yield service
    finally:
        await service.engine_thread.stop()


async def completed(service, principal, *lines, client="one", character=None, **options):
    """Complete at the end of the last line."""
    place: dict[str, Any] = {"line": len(lines) - 1, "character": len(lines[-1])}
    message = ask(buffer(*lines, **options), client=client, stop=BOUNDS, **place)
    events = [event async for event in service.complete(principal, message)]
    assert isinstance(events[-1], Done)
    return events[-1]


def counters(done):
    """All of an answer but its id and its times."""
    cost = msgspec.structs.replace(done.cost, queue_ms=0, prefill_ms=0, decode_ms=0)
    return msgspec.structs.replace(done, id="", cost=cost)


def guesses():
    """Strings, the same at each call; every other one is known in one world, the rest in another."""
    rng = np.random.default_rng(7)
    letters = rng.choice(list(string.ascii_lowercase), (NUM_GUESSES, 12))
    return ["".join(row) for row in letters]


def secrets_of(held):
    return [f'KEY = "{one}"' for one in held]


async def probed(load, held, spy):
    """What `spy` is told about each guess, while another one holds some of them, and completes there.

    The spy goes by the same names: of the client, the workspace, the file.
    """
    found = []
    async with service_of(load) as service:
        for number, guess in enumerate(guesses()):
            if number % 10 == 0:
                await completed(service, ADA, *secrets_of(held[number // 2 :][:6]), 'KEY = "')
            answers = [
                counters(await completed(service, spy, f'KEY = "{guess[:end]}')) for end in (6, 12)
            ]
            found.append(answers)
            if spy is not ADA:
                service.clients.leave(ClientId(spy, "one"), None)
    return found


async def test_no_counter_tells_whether_a_guess_stands_in_anothers_buffer(load, no_rates):
    """Two worlds, in which another principal holds one half of the guesses or the other.

    Where each guess is answered alike in both, a rule that judges by the answers says the same in
    both, and is right in exactly one of them: at chance, whatever the rule.
    """
    every = guesses()
    one_world = await probed(load, every[::2], EVE)
    other_world = await probed(load, every[1::2], EVE)
    assert one_world == other_world


async def test_the_probe_sees_what_its_own_principal_holds(load, no_rates):
    """Else it would prove nothing."""
    every = guesses()
    one_world = await probed(load, every[::2], ADA)
    other_world = await probed(load, every[1::2], ADA)
    assert one_world != other_world


VICTIM = ("import os", 'KEY = "hunter2!"', "def connect():", "    return KEY")


async def test_a_prompt_that_another_principal_has_read_is_read_anew(load):
    """Before, the number of reused tokens confirmed a guess letter by letter."""
    async with service_of(load) as service:
        await completed(service, ADA, *VICTIM)
        for guess in ("hunter2!", "hunter3!", "bunter2!"):
            lines = [VICTIM[0], f'KEY = "{guess}"', *VICTIM[2:]]
            spied = await completed(service, EVE, *lines)
            assert spied.cost.reused_tokens == 0
            service.clients.leave(ClientId(EVE, "one"), None)
        assert (await completed(service, ADA, *VICTIM)).cost.reused_tokens > 0


async def test_nothing_is_drafted_from_anothers_buffers_nor_from_what_was_written_there(load):
    """Before, a name that stood in another's file alone came as a draft of `open_buffer`."""
    long_names = tuple(f"the_name_of_{one} = the_name_of_{one}" for one in guesses()[:20])
    async with service_of(load) as service:
        for _ in range(3):
            await completed(service, ADA, *long_names, "the_name_of_")
        spied = await completed(service, EVE, "the_name_of_")
        assert set(spied.cost.accepted_by_source) <= {"model", "window", "generated"}
        fresh = await completed(service, "bob", "the_name_of_")
        assert (fresh.cost.rows, fresh.cost.steps) == (spied.cost.rows, spied.cost.steps)
        assert fresh.cost.accepted_by_source == spied.cost.accepted_by_source


async def test_text_is_the_same_whoever_asks(load):
    async with service_of(load) as service:
        said = {(await completed(service, who, *VICTIM)).text for who in (ADA, EVE, "")}
        assert len(said) == 1


async def test_figures_are_of_who_asks(load):
    async with service_of(load) as service:
        await completed(service, ADA, *VICTIM)
        before = service.gauges(EVE)
        assert set(before.values()) == {0}
        await completed(service, ADA, *VICTIM, "x = 1", client="another")
        assert service.gauges(EVE) == before
        own = service.gauges(ADA)
        assert (own["clients"], own["buffers"]) == (2, 2)
        assert own["pool_tokens"] > 0 < own["kv_bytes"]


async def test_who_leaves_takes_only_its_own_text_along(load):
    async with service_of(load) as service:
        await completed(service, ADA, *VICTIM)
        await completed(service, EVE, *VICTIM)
        service.clients.leave(ClientId(EVE, "one"), None)
        assert (await completed(service, ADA, *VICTIM)).cost.reused_tokens > 0
        assert (await completed(service, EVE, *VICTIM)).cost.reused_tokens == 0
