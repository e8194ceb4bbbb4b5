"""A completion that the host is writing: later requests that match what is written share it."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, suppress

from engine.host.protocol import CompleteEvent, Done, Failed
from engine.request import Chunk
from lsp_server.completion.anchor import Anchor
from lsp_server.host.client import HostGoneError, HostRefusedError
from lsp_server.reasons import Reason

_LOG = logging.getLogger(__name__)
_UNWANTED = Failed("cancelled", "nobody waits for it")
_GRACE_S = 0.15  # editors cancel a request before or after they send the next one
# Before what follows a suggestion is asked of a host that others use, too: who types on has pressed
# the next key by then, and nobody has read a suggestion and taken it.
LOOK_S = 0.2


class InFlightCompletion:
    """One running completion, which is cancelled when nobody waits for it any more.

    `events` are the host's. `on_first` is called at the first piece of text, while the host goes on;
    `on_done` hears the end before anyone who waits, and tells why the text is not worth showing.
    The host is not asked before somebody waits, or `rest_s` are over.
    """

    def __init__(
        self,
        anchor: Anchor,
        events: AsyncGenerator[CompleteEvent],
        *,
        on_first: Callable[[], None] = lambda: None,
        on_done: Callable[[Done], Reason | None] = lambda _: None,
        rest_s: float = 0.0,
    ) -> None:
        self.anchor = anchor
        self.reason: Reason | None = None
        self._events = events
        self._on_first = on_first
        self._on_done = on_done
        self._text = ""
        self._outcome: Done | Failed | None = None
        self._changed = asyncio.Event()
        self._rest_s = rest_s
        self._wanted = asyncio.Event()
        self._num_waiting = 0
        self._task = asyncio.create_task(self._run())
        # A task that is cancelled before it began runs no line of its own.
        self._task.add_done_callback(self._ended)

    @property
    def is_finished(self) -> bool:
        """Whether nothing more will come."""
        return self._outcome is not None

    @property
    def has_failed(self) -> bool:
        """Whether it ended without an answer, as one that others' requests went before."""
        return isinstance(self._outcome, Failed)

    def may_serve(self, anchor: Anchor) -> bool:
        """Whether what was typed since agrees with the text so far."""
        typed = self.anchor.typed_until(anchor)
        return typed is not None and fits(typed, self._text, is_finished=self.is_finished)

    async def outcome(self, anchor: Anchor) -> Done | Failed | None:
        """Wait for the end; None as soon as the text and the user's typing differ."""
        self._num_waiting += 1
        self._wanted.set()
        try:
            while not self.is_finished and self.may_serve(anchor):
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
            await self._rest()
            async with aclosing(self._events) as events:
                async for event in events:
                    self._take(event)
            self._take(Failed("host_gone", "the host stopped in the middle of it"))
        except HostRefusedError as error:
            self._take(Failed(error.problem.code, str(error)))
        except HostGoneError as error:
            self._take(Failed("host_gone", str(error)))

    async def _rest(self) -> None:
        if self._rest_s:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._wanted.wait(), self._rest_s)

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
                self._on_first()
            self._text += event.text
        else:
            if isinstance(event, Done):
                self.reason = self._on_done(event)
            self._outcome = event
        self._wake()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


def fits(typed: str, text: str, *, is_finished: bool) -> bool:
    """A completion has printed what was typed since it began, or may still print it."""
    if text.startswith(typed):
        return not is_finished or len(typed) < len(text)
    return not is_finished and typed.startswith(text)
