"""The thread that answers questions: of each buffer the latest one, so that none pile up."""

import asyncio
import time
from collections.abc import Callable
from queue import SimpleQueue
from threading import Thread
from typing import NamedTuple

_Work = Callable[[], object]


class _Asked(NamedTuple):
    """What is to be done, and who hears that it is over."""

    work: _Work
    over: asyncio.Future[bool]


class QuestionThread:
    """Does one piece of work after the other. Its methods belong to the event loop's thread.

    It ends with the process, also where a disk keeps it waiting.
    """

    def __init__(self) -> None:
        self._waiting: dict[str, _Asked] = {}  # by buffer
        self._under_way: _Asked | None = None
        self._began = 0.0
        self._queue: SimpleQueue[_Asked | None] = SimpleQueue()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_closing = False

    @property
    def busy_s(self) -> float:
        """How long the work takes that is under way; 0 where none is."""
        return 0.0 if self._under_way is None else time.monotonic() - self._began

    def ask(self, buffer: str, work: _Work) -> asyncio.Future[bool]:
        """Have `work` done, which raises nothing; False: later work of the buffer took its place."""
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
            Thread(target=self._run, args=(self._loop,), name="repository", daemon=True).start()
        if (former := self._waiting.get(buffer)) is not None and not former.over.done():
            former.over.set_result(False)
        self._waiting[buffer] = asked = _Asked(work, self._loop.create_future())
        self._go_on()
        return asked.over

    def close(self) -> None:
        """End, once all is done."""
        self._is_closing = True
        self._go_on()

    def _go_on(self) -> None:
        if self._under_way is None and self._waiting:
            self._under_way = self._waiting.pop(next(iter(self._waiting)))
            self._began = time.monotonic()
            self._queue.put(self._under_way)
        elif self._under_way is None and self._is_closing:
            self._queue.put(None)

    def _ended(self, asked: _Asked) -> None:
        self._under_way = None
        if not asked.over.done():
            asked.over.set_result(True)
        self._go_on()

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        while (asked := self._queue.get()) is not None:
            asked.work()
            try:
                loop.call_soon_threadsafe(self._ended, asked)
            except RuntimeError:  # the loop is closed: nobody waits any more
                return
