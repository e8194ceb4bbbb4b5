"""A completion that the host is writing, shared by later requests that match its text."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, suppress
from dataclasses import replace

from engine.host.protocol import CompleteEvent
from engine.request import Chunk, Done
from lsp_server.completion.plan import Plan
from lsp_server.completion.suggestions import PlacedSuggestion, Suggestion, line_hashes
from lsp_server.documents.anchor import Anchor
from lsp_server.host.client import HostGoneError, HostRefusedError
from lsp_server.reasons import Reason, host_reason

_LOG = logging.getLogger(__name__)
_GRACE_S = 0.15  # seconds; VS Code asks again 20 to 70 ms after a key, and may cancel before that
# Seconds before a prefetch from a shared host: a user that types on has pressed the next key by
# then, and is too quick to have read and accepted a suggestion.
LOOK_S = 0.2


class InFlightCompletion:
    """A completion from the host's `events`, cancelled when no request waits for it.

    It calls the host once a request waits or `rest_s` seconds have passed.
    """

    def __init__(
        self,
        plan: Plan,
        events: AsyncGenerator[CompleteEvent],
        remember: Callable[[PlacedSuggestion], None],
        rest_s: float = 0.0,
    ) -> None:
        self.anchor = plan.anchor
        self.place = PlacedSuggestion.at(plan.anchor)
        self.end: PlacedSuggestion | Reason | None = None  # None while it runs
        self._plan = plan
        self._events = events
        self._remember = remember
        self._text = ""
        self._changed = asyncio.Event()
        self._rest_s = rest_s
        self._wanted = asyncio.Event()
        self._num_waiting = 0
        self._task = asyncio.create_task(self._run())
        # A task cancelled before it starts never runs, so `_run` cannot report its end.
        self._task.add_done_callback(self._ended)

    def may_serve(self, anchor: Anchor) -> bool:
        """Whether the text typed since agrees with the text so far."""
        return self._fits(self.place.typed_until(anchor))

    async def outcome(self, anchor: Anchor) -> Suggestion | Reason:
        """Wait for the end, or until the user's text differs; return what is left at `anchor`."""
        typed = self.place.typed_until(anchor)
        self._num_waiting += 1
        self._wanted.set()
        try:
            while self.end is None and self._fits(typed):
                await self._changed.wait()
        finally:
            self._num_waiting -= 1
            if self._num_waiting == 0 and self.end is None:
                asyncio.get_running_loop().call_later(_GRACE_S, self._end_if_unwanted)
        if not isinstance(self.end, PlacedSuggestion):
            return self.end or Reason.SUPERSEDED
        return self.end.rest_at(anchor, line_hashes(anchor.snapshot.lines)) or Reason.SUPERSEDED

    def cancel(self) -> None:
        """Cancel the completion at once."""
        self._task.cancel()

    def _fits(self, typed: str | None) -> bool:
        return typed is not None and (self._text.startswith(typed) or typed.startswith(self._text))

    def _end_if_unwanted(self) -> None:
        if self._num_waiting == 0:
            self.cancel()

    async def _run(self) -> None:
        if self._rest_s:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._wanted.wait(), self._rest_s)
        async with aclosing(self._events) as events:
            async for event in events:
                self._take(event)

    def _take(self, event: CompleteEvent) -> None:
        if isinstance(event, Chunk):
            if not self._text:
                self._plan.judge.prepare()  # in parallel with the host
            self._text += event.text
            self._wake()
        elif isinstance(event, Done):
            made = self._plan.suggestion(event)
            self._finish(made if isinstance(made, Reason) else replace(self.place, suggestion=made))
        else:
            self._finish(host_reason(event.code))

    def _ended(self, task: asyncio.Task[None]) -> None:
        if task.cancelled():  # no request waits for it
            self._finish(Reason.SUPERSEDED)
            return
        match task.exception():
            case HostRefusedError(problem=problem):
                self._finish(host_reason(problem.code))
            case None | HostGoneError():  # perhaps halfway through
                self._finish(Reason.HOST_UNREACHABLE)
            case error:
                _LOG.error("a completion could not be finished", exc_info=error)
                self._finish(Reason.HOST_FAILED)

    def _finish(self, end: PlacedSuggestion | Reason) -> None:
        if self.end is None:
            self.end = end
            del self._plan  # it holds large syntax trees
            if isinstance(end, PlacedSuggestion):
                self._remember(end)
            self._wake()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()
