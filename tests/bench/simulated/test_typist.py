"""A trace typed in real time, and the record of its keys."""

import math

import pytest

from tests.bench.simulated.traces import Trace
from tests.bench.simulated.typing_figures import waits
from tests.bench.simulated.typist import Clock, Typist

pytestmark = pytest.mark.asyncio


class Once:
    def __init__(self, text):
        self.text = text

    def watch(self, screen):
        screen.show(self.text, 0.0)

    def press(self, action):
        pass


async def typed(shown):
    return await Typist(1, Clock(1e5)).type(Trace("1", "a.py", "", "", "abc", "", ()), Once(shown))


async def test_text_that_a_key_took_away_is_not_there_behind_the_key():
    assert list(waits(await typed("xyz"))) == [math.inf, math.inf]


async def test_text_that_is_typed_along_stays_until_its_last_key():
    assert list(waits(await typed("ax"))) == [0.0, math.inf]
