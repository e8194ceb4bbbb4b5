"""What is told on the engine's thread, as the event loop hears it."""

import asyncio
from collections.abc import Callable

import pytest

from engine.host.protocol import Failed
from engine.host.service import EventRelay
from engine.request import Chunk

ENDED = Failed("odd", "it ended")


class Loop:
    """Notes who wants to be called, and calls when it is told to."""

    def __init__(self) -> None:
        self.woken: list[Callable[[], None]] = []
        self.later: list[Callable[[], None]] = []

    def call_soon_threadsafe(self, callback):
        self.woken.append(callback)

    def call_later(self, _seconds, callback):
        self.later.append(callback)

    def turn(self) -> None:
        self.woken.pop()()

    def wait(self) -> None:
        self.later.pop()()


@pytest.fixture
def loop():
    return Loop()


@pytest.fixture
def relay(loop):
    return EventRelay(loop, asyncio.Queue())


def heard(relay):
    return [relay.events.get_nowait() for _ in range(relay.events.qsize())]


async def test_the_first_text_is_heard_at_once(relay, loop):
    relay.tell(Chunk("a"))
    loop.turn()
    assert heard(relay) == [Chunk("a")]


async def test_what_was_told_before_the_loop_came_wakes_it_once(relay, loop):
    relay.tell(Chunk("a"))
    relay.tell(ENDED)
    loop.turn()
    assert not loop.woken
    assert heard(relay) == [Chunk("a"), ENDED]


async def test_text_soon_after_text_waits_for_the_next_look(relay, loop):
    relay.tell(Chunk("a"))
    loop.turn()
    relay.tell(Chunk("b"))
    relay.tell(Chunk("c"))
    assert not loop.woken
    loop.wait()
    assert heard(relay) == [Chunk("a"), Chunk("b"), Chunk("c")]


async def test_the_end_never_waits_for_a_look_and_brings_the_text_before_it(relay, loop):
    relay.tell(Chunk("a"))
    loop.turn()
    relay.tell(Chunk("b"))
    relay.tell(ENDED)
    loop.turn()
    assert heard(relay) == [Chunk("a"), Chunk("b"), ENDED]
    loop.wait()
    assert not loop.later


async def test_after_a_look_that_found_nothing_text_wakes_the_loop_again(relay, loop):
    relay.tell(Chunk("a"))
    loop.turn()
    loop.wait()
    relay.tell(Chunk("b"))
    loop.turn()
    assert heard(relay) == [Chunk("a"), Chunk("b")]


async def test_a_look_may_come_before_a_waking_that_then_finds_nothing(relay, loop):
    relay.tell(Chunk("a"))
    loop.turn()
    relay.tell(ENDED)
    loop.wait()
    loop.turn()
    assert heard(relay) == [Chunk("a"), ENDED]


async def test_nobody_listens_to_a_loop_that_is_closed(relay, loop):
    def closed(_):
        raise RuntimeError("Event loop is closed")

    loop.call_soon_threadsafe = closed
    relay.tell(Chunk("a"))
    assert not heard(relay)
