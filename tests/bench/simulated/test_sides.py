"""A trace is typed beside each side in turn, in real time, while the others rest."""

import math
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest

from tests.bench.simulated import sides
from tests.bench.simulated.sides import Effort, take_turns
from tests.bench.simulated.traces import Trace
from tests.bench.simulated.typing_figures import waits
from tests.bench.simulated.typist import Clock, Typist
from tests.support.workspaces import nothing

pytestmark = pytest.mark.asyncio


@dataclass
class Scripted:
    name: str
    notes: list[object] = field(default_factory=list)
    text: str = ""
    screen: object = None

    @asynccontextmanager
    async def sitting(self, trace):
        self.notes.append((self.name, trace.id))
        yield self

    @property
    def process_ids(self):
        return [self.name]

    def watch(self, screen):
        self.screen = screen
        screen.show(self.text, 0.0)

    def press(self, action):
        pass

    async def effort(self):
        return Effort(tokens=3)


def trace(name, target="ab"):
    return Trace(name, "a.py", "", "", target, "", ())


async def turns(beside, *traces):
    return await take_turns(beside, traces, Typist(1, Clock(1e6)))


async def test_who_begins_changes_and_nobody_works_beside_another(monkeypatch):
    notes: list[object] = []
    monkeypatch.setattr(sides, "resume", lambda ids: notes.append((*ids, "wakes")))
    monkeypatch.setattr(sides, "stop", lambda ids: notes.append((*ids, "rests")))
    await turns([Scripted("a", notes), Scripted("b", notes)], trace("1"), trace("2"))
    order = [("a", "1"), ("b", "1"), ("b", "2"), ("a", "2")]
    assert notes == [
        note for name, one in order for note in ((name, "wakes"), (name, one), (name, "rests"))
    ]


async def test_text_that_stood_there_for_long_enough_is_taken(monkeypatch):
    monkeypatch.setattr(sides, "resume", nothing)
    monkeypatch.setattr(sides, "stop", nothing)
    runs = await turns([Scripted("a", text="abc" * 9)], trace("1", "abc" * 10))
    assert "all" in [key.kind for key in runs["a"][0].typed.keys]


async def typed(shown):
    return await Typist(1, Clock(1e5)).type(trace("1", "abc"), Scripted("a", text=shown))


async def test_text_that_a_key_took_away_is_not_there_behind_the_key():
    assert list(waits(await typed("xyz"))) == [math.inf, math.inf]


async def test_text_that_is_typed_along_stays_until_its_last_key():
    assert list(waits(await typed("ax"))) == [0.0, math.inf]
