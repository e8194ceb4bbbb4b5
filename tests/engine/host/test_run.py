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


async def test_chunks_that_the_loop_has_not_come_to_are_one():
    """A loop that is behind is not woken for each, and writes once."""
    run = Run(
        HeldEngine(), Metrics(), lambda: CompletionRequest("x = ", ""), lost, is_prefill=False
    )
    told = run.begin(lambda: False)
    assert isinstance(told, Told)
    while not told.is_done:
        told.advance()
    await asyncio.sleep(0)
    heard = [run.events.get_nowait() for _ in range(run.events.qsize())]
    assert [type(event) for event in heard] == [Chunk, Done]
    assert {event.text for event in heard} == {"one two three"}
    assert len({event.id for event in heard}) == 1


async def test_chunks_that_the_loop_waits_for_come_one_by_one():
    run = Run(
        HeldEngine(), Metrics(), lambda: CompletionRequest("x = ", ""), lost, is_prefill=False
    )
    told = run.begin(lambda: False)
    assert isinstance(told, Told)
    heard = []
    while not told.is_done:
        told.advance()
        await asyncio.sleep(0)
        heard += [run.events.get_nowait() for _ in range(run.events.qsize())]
    assert [event.text for event in heard] == ["one ", "two ", "three", "one two three"]
