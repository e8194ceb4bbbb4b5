"""Feedback on its way to the host: it goes along with the next request, or alone after a moment."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from engine.host.protocol import MAX_FEEDBACK, Feedback

_ALONE_S = 0.5  # who types asks again earlier


@dataclass(slots=True)
class FeedbackBatch:
    """What became of completions, two to three reports a key: a request for each would cost more.

    `send` tells the host one by one, and raises nothing.
    """

    send: Callable[[Feedback], Awaitable[None]]
    _waiting: list[Feedback] = field(default_factory=list)
    _timer: asyncio.TimerHandle | None = None
    _sending: set[asyncio.Task[None]] = field(default_factory=set)

    def add(self, feedback: Feedback) -> None:
        """Have it told soon."""
        self._waiting.append(feedback)
        if len(self._waiting) >= MAX_FEEDBACK:
            self._begin()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_ALONE_S, self._begin)

    def take(self) -> tuple[Feedback, ...]:
        """What waits, for a request that takes it along."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        waiting, self._waiting = self._waiting, []
        return tuple(waiting)

    async def flush(self) -> None:
        """Tell what waits now."""
        self._begin()
        await asyncio.gather(*self._sending)

    def _begin(self) -> None:
        if waiting := self.take():
            task = asyncio.create_task(self._send_all(waiting))
            self._sending.add(task)
            task.add_done_callback(self._sending.discard)

    async def _send_all(self, waiting: tuple[Feedback, ...]) -> None:
        for feedback in waiting:
            await self.send(feedback)
