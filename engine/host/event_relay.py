"""Passes the engine thread's events of one completion to the event loop."""

import asyncio
import threading
from contextlib import suppress
from dataclasses import dataclass, field

from engine.host.protocol import CompleteEvent
from engine.request import Chunk

_LOOK_S = 0.005  # seconds: too short to see, long enough for several tokens of a small model


@dataclass(slots=True)
class EventRelay:
    """Passes events to the loop, which polls after text, as waking it costs the engine time."""

    loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)
    events: asyncio.Queue[CompleteEvent] = field(default_factory=asyncio.Queue)
    _untold: list[CompleteEvent] = field(default_factory=list)  # not yet taken by the loop
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _is_woken: bool = False  # the loop is about to look
    _looks_again: bool = False  # the loop polls within `_LOOK_S`

    def tell(self, event: CompleteEvent) -> None:
        """Pass an event to the loop. Thread-safe."""
        with self._lock:
            self._untold.append(event)
            can_wait = self._is_woken or (self._looks_again and isinstance(event, Chunk))
            self._is_woken = self._is_woken or not can_wait
        if not can_wait:
            with suppress(RuntimeError):  # the loop is closed
                self.loop.call_soon_threadsafe(self._look)

    def _look(self) -> None:
        with self._lock:
            untold, self._untold = self._untold, []
            self._is_woken = False
            self._looks_again = bool(untold) and isinstance(untold[-1], Chunk)
        for event in untold:
            self.events.put_nowait(event)
        if self._looks_again:
            self.loop.call_later(_LOOK_S, self._look)
