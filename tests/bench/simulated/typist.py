"""Lets a person type one trace beside an assistant, in real time, and records the course."""

import asyncio
import time
from dataclasses import dataclass, field
from typing import Protocol

from tests.bench.simulated.person import READING_S, Action, Kind, Person
from tests.bench.simulated.screen import Screen, Suggestion
from tests.bench.simulated.traces import Trace


class Clock:
    """The person's seconds since `restart`, of which `speed` pass in a real one."""

    def __init__(self, speed: float = 1.0) -> None:
        assert speed > 0
        self._speed = speed
        self.restart()

    def restart(self) -> None:
        self._origin = time.perf_counter()

    def now(self) -> float:
        return (time.perf_counter() - self._origin) * self._speed

    async def wait_until(self, due: float) -> None:
        """Let others run until `due`, at least once."""
        await asyncio.sleep(max(0.0, due - self.now()) / self._speed)


class Assistant(Protocol):
    def watch(self, screen: Screen) -> None:
        """Show text on `screen` from now on; the cursor stands before the target."""

    def press(self, action: Action) -> None:
        """Take an action that the person did, and ask for the next text."""


@dataclass(frozen=True, slots=True)
class KeyPress:
    """A key, in the person's seconds."""

    at: float
    late_s: float  # delay of the key on a busy machine
    kind: Kind
    text: str  # what it wrote


@dataclass(frozen=True, slots=True)
class TypedTrace:
    id: str
    own_s: tuple[float, ...]  # before each key of a person who types everything
    keys: tuple[KeyPress, ...]
    suggestions: tuple[Suggestion, ...]
    visible: tuple[tuple[float, float], ...]  # begins and ends of ghost text
    num_flickers: int = 0


@dataclass(slots=True)
class Typist:
    seed: int
    clock: Clock = field(default_factory=Clock)
    typos: float = 0.0  # share of letters and digits that are typed wrong first

    async def type(self, trace: Trace, assistant: Assistant) -> TypedTrace:
        """Type a trace to its end. Keys are due at their times, however late those before were."""
        person = Person(trace.target, f"{self.seed} {trace.id}", typos=self.typos)
        self.clock.restart()
        screen = Screen(self.clock.now, trace.target)
        assistant.watch(screen)
        keys: list[KeyPress] = []
        due = 0.0
        while not person.is_done:
            due += person.interval()
            await self.clock.wait_until(due)
            read = screen.ghost.standing_since(self.clock.now() - READING_S)
            action = person.act(screen.ghost.text, read)
            if action.kind == "erase":
                screen.erase()
            else:
                screen.write(action.text)
            at = screen.key_at
            keys.append(KeyPress(at, at - due, action.kind, action.text))
            if not person.is_done:
                assistant.press(action)
        screen.close()
        return TypedTrace(
            trace.id,
            tuple(person.own_intervals),
            tuple(keys),
            tuple(screen.suggestions),
            tuple(screen.visible),
            screen.num_flickers,
        )
