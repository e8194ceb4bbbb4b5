"""Events on their way from the engine's thread to the event loop's."""

import asyncio
import threading
from contextlib import suppress
from dataclasses import dataclass, field

from engine.host.protocol import CompleteEvent
from engine.request import Chunk

# Nobody sees that text comes so much later; a small model writes several tokens in it.
_LOOK_S = 0.005


@dataclass(slots=True)
class EventRelay:
    """Wakes the loop as seldom as can be: each time takes some from the engine's thread.

    The first event and the last one wake it. Once text was told, the loop looks by itself a little
    later, as long as more of it comes.
    """

    loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)
    events: asyncio.Queue[CompleteEvent] = field(default_factory=asyncio.Queue)
    _untold: list[CompleteEvent] = field(default_factory=list)  # the loop has not come to them yet
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _is_woken: bool = False  # the loop is about to look
    _looks_again: bool = False  # within `_LOOK_S`

    def tell(self, event: CompleteEvent) -> None:
        """Have the loop hear of it. Any thread may call it."""
        with self._lock:
            self._untold.append(event)
            can_wait = self._is_woken or (self._looks_again and isinstance(event, Chunk))
            self._is_woken = self._is_woken or not can_wait
        if not can_wait:
            with suppress(RuntimeError):  # the loop is closed: nobody listens any more
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
