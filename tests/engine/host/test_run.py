"""What a completion says on the engine's thread, as the event loop hears it."""

import asyncio

import pytest

from engine.host.metrics import Metrics
from engine.host.protocol import Chunk, Done
from engine.host.run import Run
from engine.request import CompletionRequest
from tests.support.running_host import HeldEngine, Told

pytestmark = pytest.mark.asyncio


def lost(_):
    raise AssertionError


async def test_a_loop_that_is_behind_is_woken_once_and_hears_all_in_its_order(monkeypatch):
    """Each time takes some from the engine's thread."""
    run = Run(
        HeldEngine(), Metrics(), lambda: CompletionRequest("x = ", ""), lost, is_prefill=False
    )
    told, woken = run.begin(lambda: False), []
    wake = run.told.loop.call_soon_threadsafe
    monkeypatch.setattr(
        run.told.loop, "call_soon_threadsafe", lambda *one: woken.append(wake(*one))
    )
    assert isinstance(told, Told)
    while not told.is_done:
        told.advance()
    await asyncio.sleep(0)
    heard = [run.told.events.get_nowait() for _ in range(run.told.events.qsize())]
    assert len(woken) == 1
    assert [type(event) for event in heard] == [Chunk, Chunk, Chunk, Done]
    assert [event.text for event in heard] == ["one ", "two ", "three", "one two three"]
    assert len({event.id for event in heard}) == 1
