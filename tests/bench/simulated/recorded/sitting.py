"""A trace typed beside recordings, on a clock that takes no time."""

import heapq
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

from engine.request import FinishReason
from lsp_server.settings import Settings
from tests.bench.simulated.person import Action
from tests.bench.simulated.recorded.playback import Limits, Playback
from tests.bench.simulated.recorded.recording import RecordedToken, Recording
from tests.bench.simulated.screen import Screen
from tests.bench.simulated.traces import Trace
from tests.bench.simulated.typist import Clock

_FROM_MEMORY_S, _BEGIN_S = 0.003, 0.012  # seconds to an answer from memory; to a model's first work


class VirtualClock(Clock):
    """The person's seconds, in which all that is due happens in its order."""

    def restart(self) -> None:
        self._now = 0.0
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._number = 0

    def now(self) -> float:
        return self._now

    def at(self, moment: float, work: Callable[[], None]) -> None:
        self._number += 1
        heapq.heappush(self._due, (moment, self._number, work))

    async def wait_until(self, due: float) -> None:
        while self._due and self._due[0][0] <= due:
            moment, _, work = heapq.heappop(self._due)
            self._now = max(self._now, moment)
            work()
        self._now = max(self._now, due)


@dataclass(slots=True)
class Recordings:
    """All recordings of a trace, and how they are played."""

    trace: Trace
    by_position: Mapping[int, Recording]
    limits: Limits
    settings: Settings
    pace: float = 1.0

    def playback(self, position: int, *, is_ahead: bool) -> Playback:
        one = self._at(position)
        return Playback(self.trace, one, self.limits, self.settings, self.pace, is_ahead)

    def _at(self, position: int) -> Recording:
        """Return the recording there, or the rest of one before that wrote what was typed since."""
        known = max(one for one in self.by_position if one <= position)
        one, typed = self.by_position[known], self.trace.target[known:position]
        if not typed:
            return one
        if not one.text.startswith(typed):
            return Recording(one.trace, position, (), FinishReason.END_TOKEN, one.cost)
        left, tokens = len(typed), list[RecordedToken]()
        for token in one.tokens:
            if rest := token.text[left:]:
                tokens.append(RecordedToken(rest, token.log_prob, token.step))
            left = max(0, left - len(token.text))
        first = tokens[0].step - 1 if tokens else 0
        shifted = (RecordedToken(each.text, each.log_prob, each.step - first) for each in tokens)
        return Recording(one.trace, position, tuple(shifted), one.end, one.cost)


@dataclass(slots=True, eq=False)
class _Running:
    """A completion that began at a position and a moment."""

    position: int
    began: float
    playback: Playback
    shown: str = ""
    is_over: bool = False

    def rest(self, typed: str) -> str:
        """Return what is left to show once `typed` stands behind its position."""
        return self.shown[len(typed) :] if self.shown.startswith(typed) else ""

    def fits(self, typed: str, now: float) -> bool:
        written = self.playback.raw_at(now - self.began)
        return typed.startswith(written) or any(
            one.startswith(typed) for one in (written, self.shown)
        )

    def free_at(self, now: float) -> float:
        """The end of its step under way, if it is cancelled now."""
        step_s = self.playback.step_s
        if now < self.began or not step_s:
            return now
        return self.began + math.ceil((now - self.began) / step_s) * step_s


@dataclass(slots=True)
class RecordedSitting:
    """An editor whose plugin asks again when there is more, as VS Code's and Neovim's do."""

    recordings: Recordings
    clock: VirtualClock
    screen: Screen = field(init=False)
    num_begun: int = 0
    _kept: list[tuple[int, str]] = field(default_factory=list)  # positions and their texts
    _running: _Running | None = None
    _ahead: _Running | None = None
    _free_at: float = 0.0
    _is_waiting: bool = False

    def watch(self, screen: Screen) -> None:
        self.screen = screen
        self._ask()

    def press(self, action: Action) -> None:
        del action
        self._ask()

    @property
    def _position(self) -> int:
        return len(self.recordings.trace.target) - len(self.screen.rest)

    def _ask(self) -> None:
        self._is_waiting, position = True, self._position
        self.clock.at(self.clock.now() + _FROM_MEMORY_S, partial(self._answer, position))

    def _answer(self, position: int) -> None:
        if position != self._position:
            return
        if text := self._remembered(position):
            self._show(text)
            if self._running is None or self._running.is_over:
                self._look_ahead(text)
            return
        for one in (self._running, self._ahead):
            if one is not None and not one.is_over and self._fits(one):
                return
        self._begin(position)

    def _remembered(self, position: int) -> str:
        target = self.recordings.trace.target
        rests = (
            text[position - start :]
            for start, text in reversed(self._kept)
            if start <= position and text.startswith(target[start:position])
        )
        return next(filter(None, rests), "")

    def _since(self, one: _Running) -> str:
        return self.recordings.trace.target[one.position : self._position]

    def _fits(self, one: _Running) -> bool:
        is_behind = one.position <= self._position
        return is_behind and one.fits(self._since(one), self.clock.now())

    def _begin(self, position: int) -> None:
        for one in (self._running, self._ahead):
            self._cancel(one)
        self._ahead = None
        self.num_begun += 1
        self._running = self._started(position, is_ahead=False)

    def _started(self, position: int, *, is_ahead: bool) -> _Running:
        began = max(self.clock.now() + _BEGIN_S, self._free_at)
        one = _Running(position, began, self.recordings.playback(position, is_ahead=is_ahead))
        for part in one.playback.parts:
            self.clock.at(began + part.after_s, partial(self._told, one, part.text))
        self.clock.at(began + one.playback.end_s, partial(self._ended, one))
        return one

    def _cancel(self, one: _Running | None) -> None:
        if one is not None and not one.is_over:
            one.is_over = True
            self._free_at = max(self._free_at, one.free_at(self.clock.now()))

    def _told(self, one: _Running, text: str) -> None:
        if not one.is_over:
            one.shown = text
            self._kept.append((one.position, text))
            self._show_rest(one)

    def _ended(self, one: _Running) -> None:
        if one.is_over:
            return
        one.is_over = True
        if one is self._ahead and not (self._is_waiting and one.position <= self._position):
            return
        if rest := self._show_rest(one):
            self._look_ahead(rest)
        elif self._is_waiting and one.position == self._position:
            self._show("")
        elif self._is_waiting:
            self._begin(self._position)

    def _show_rest(self, one: _Running) -> str:
        is_behind = one.position <= self._position
        rest = one.rest(self._since(one)) if is_behind else ""
        if rest and (one is self._running or self._is_waiting):
            self._show(rest)
        return rest

    def _show(self, text: str) -> None:
        self._is_waiting = False
        self.screen.show(text, 0.0)

    def _look_ahead(self, text: str) -> None:
        """Begin at the place where the cursor will be once `text` is accepted."""
        then = self._position + len(text)
        is_right = self.screen.rest.startswith(text) and text != self.screen.rest
        is_there = self._ahead is not None and self._ahead.position == then
        if is_right and not is_there and not self._remembered(then):
            self._cancel(self._ahead)
            self._ahead = self._started(then, is_ahead=True)
