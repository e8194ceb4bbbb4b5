"""What is told on the engine's thread, as the event loop hears it."""

import asyncio
from collections.abc import Callable

import pytest

from engine.host.event_relay import EventRelay
from engine.host.protocol import Failed
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


A, B, C = Chunk("a"), Chunk("b"), Chunk("c")
TURN, WAIT = "turn", "wait"  # the loop comes as it was woken, or to look by itself


@pytest.mark.parametrize(
    "steps",
    [
        pytest.param([A, TURN, [A]], id="the first text is heard at once"),
        pytest.param([A, ENDED, TURN, [A, ENDED]], id="what came before the loop wakes it once"),
        pytest.param([A, TURN, [A], B, C, WAIT, [B, C]], id="text soon after text waits"),
        pytest.param([A, TURN, [A], B, ENDED, TURN, [B, ENDED], WAIT], id="the end never waits"),
        pytest.param([A, TURN, WAIT, [A], B, TURN, [B]], id="after a look without text it wakes"),
        pytest.param([A, TURN, [A], ENDED, WAIT, TURN, [ENDED]], id="a look comes before a waking"),
    ],
)
async def test_the_loop_is_woken_as_seldom_as_can_be(relay, loop, steps):
    for step in steps:
        if step == TURN:
            loop.turn()
            assert not loop.woken
        elif step == WAIT:
            loop.wait()
        elif isinstance(step, list):
            assert heard(relay) == step
            assert not loop.woken
        else:
            relay.tell(step)
    if steps[-1] == WAIT:
        assert not loop.later


async def test_nobody_listens_to_a_loop_that_is_closed(relay, loop):
    def closed(_):
        raise RuntimeError("Event loop is closed")

    loop.call_soon_threadsafe = closed
    relay.tell(Chunk("a"))
    assert not heard(relay)
