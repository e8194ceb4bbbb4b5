"""A completion that the host is writing: who asks again while it runs, and types along, joins it."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import NamedTuple

from engine.host.protocol import Chunk, CompleteEvent, Done, Failed, Position
from lsp_server.completion.cursor import Origin
from lsp_server.completion.type_through import fits
from lsp_server.documents.document import Snapshot
from lsp_server.host.client import HostGoneError, HostRefusedError
from lsp_server.reasons import Reason

_LOG = logging.getLogger(__name__)
_UNWANTED = Failed("cancelled", "nobody waits for it")
_GRACE_S = 0.15  # editors cancel a request before or after they send the next one


class Reader(NamedTuple):
    """What is done with a text: with its first piece, while the host goes on, and at its end."""

    prepare: Callable[[], None]
    finish: Callable[[Done], Reason | None]


NOBODY = Reader(lambda: None, lambda _: None)


class Generation:
    """One running completion, which ends when nobody waits for it any more.

    `events` are the host's. The reader has the last one before anyone who waits.
    """

    def __init__(
        self,
        origin: Origin,
        events: AsyncGenerator[CompleteEvent],
        reader: Reader,
    ) -> None:
        self.origin = origin
        self.reason: Reason | None = None  # why what was written is not worth showing
        self._events = events
        self._reader = reader
        self._text = ""
        self._outcome: Done | Failed | None = None
        self._changed = asyncio.Event()
        self._num_waiting = 0
        self._task = asyncio.create_task(self._run())
        # A task that is cancelled before it began runs no line of its own.
        self._task.add_done_callback(self._ended)

    @property
    def is_finished(self) -> bool:
        """Whether nothing more will come."""
        return self._outcome is not None

    def may_serve(self, snapshot: Snapshot, position: Position) -> bool:
        """Whether what was typed since agrees with the text so far."""
        typed = self.origin.typed_since(snapshot, position)
        return typed is not None and fits(typed, self._text, is_finished=self.is_finished)

    async def outcome(self, snapshot: Snapshot, position: Position) -> Done | Failed | None:
        """Wait for the end; None as soon as the text goes another way than the user."""
        self._num_waiting += 1
        try:
            while not self.is_finished and self.may_serve(snapshot, position):
                await self._changed.wait()
            return self._outcome
        finally:
            self._num_waiting -= 1
            if self._num_waiting == 0 and not self.is_finished:
                asyncio.get_running_loop().call_later(_GRACE_S, self._end_if_unwanted)

    def cancel(self) -> None:
        """End it now."""
        self._task.cancel()

    def _end_if_unwanted(self) -> None:
        if self._num_waiting == 0:
            self.cancel()

    async def _run(self) -> None:
        try:
            async with aclosing(self._events) as events:
                async for event in events:
                    self._take(event)
            self._take(Failed("host_gone", "the host stopped in the middle of it"))
        except HostRefusedError as error:
            self._take(Failed(error.problem.code, str(error)))
        except HostGoneError as error:
            self._take(Failed("host_gone", str(error)))

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            _LOG.error("a completion could not be finished", exc_info=error)
            self._take(Failed("internal_error", f"{type(error).__name__}: {error}"))
        self._take(_UNWANTED)

    def _take(self, event: CompleteEvent) -> None:
        """Wake all who wait. Only the first end counts."""
        if self.is_finished:
            return
        if isinstance(event, Chunk):
            if not self._text:
                self._reader.prepare()
            self._text += event.text
        else:
            if isinstance(event, Done):
                self.reason = self._reader.finish(event)
            self._outcome = event
        self._changed.set()
        self._changed = asyncio.Event()
