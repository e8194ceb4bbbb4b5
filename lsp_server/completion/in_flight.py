"""A completion that the host is writing, shared by later requests that match its text."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, suppress
from dataclasses import replace

from engine.host.protocol import CompleteEvent
from engine.request import Chunk, Done
from lsp_server.completion.plan import Plan
from lsp_server.completion.suggestions import HashOf, PlacedSuggestion, Suggestion, line_hashes
from lsp_server.documents.anchor import Anchor
from lsp_server.host.client import HostGoneError, HostRefusedError
from lsp_server.reasons import Reason, host_reason

_LOG = logging.getLogger(__name__)
_GRACE_S = 0.15  # seconds; VS Code asks again 20 to 70 ms after a key, and may cancel before that
# Seconds before a prefetch from a shared host: a user that types on has pressed the next key by
# then, and is too quick to have read and accepted a suggestion.
LOOK_S = 0.2


class InFlightCompletion:
    """A completion from the host's `events`, shown in parts that each begin with the former.

    It calls the host once a request waits or `rest_s` seconds have passed. It goes on after its
    first answer, and is cancelled when the document no longer has the text that it continues.
    """

    def __init__(
        self,
        plan: Plan,
        events: AsyncGenerator[CompleteEvent],
        news: Callable[["InFlightCompletion"], None],
        is_outdated: Callable[[Anchor], bool],
        rest_s: float = 0.0,
    ) -> None:
        """`news` is called when `part` has become longer, and once it ended."""
        self.anchor = plan.anchor
        self.place = PlacedSuggestion.at(plan.anchor)
        self.part: PlacedSuggestion | None = None  # what there is to show so far
        self.served: Anchor | None = None  # of the last request that got a part of its text
        self.end: PlacedSuggestion | Reason | None = None  # None while it runs
        self._plan = plan
        self._events = events
        self._news = news
        self._is_outdated = is_outdated
        self._text = ""
        self._unsure = ""  # may follow `_text`
        self._changed = asyncio.Event()
        self._rest_s = rest_s
        self._wanted = asyncio.Event()
        self._num_waiting = 0
        self._doubt: asyncio.TimerHandle | None = None  # when it ends, if it is not wanted
        self._task = asyncio.create_task(self._run())
        # A task cancelled before it starts never runs, so `_run` cannot report its end.
        self._task.add_done_callback(self._ended)

    def may_serve(self, anchor: Anchor) -> bool:
        """Whether the text typed since agrees with the text so far."""
        return self._fits(self.place.typed_until(anchor))

    async def outcome(self, anchor: Anchor) -> Suggestion | Reason:
        """Wait for text to show at `anchor`, the end, or until the user's text differs."""
        typed = self.place.typed_until(anchor)
        hash_of = line_hashes(anchor.snapshot.lines)
        self._num_waiting += 1
        self._wanted.set()
        try:
            while (rest := self._rest_at(anchor, hash_of)) is None:
                if self.end is not None or not self._fits(typed):
                    return self.end if isinstance(self.end, Reason) else Reason.SUPERSEDED
                await self._changed.wait()
        finally:
            self._num_waiting -= 1
            self.doubt()
        self.served = anchor
        return rest

    def doubt(self) -> None:
        """End it in a moment, unless a request of the document's present state joins until then."""
        if self._doubt is not None:
            self._doubt.cancel()
        self._doubt = asyncio.get_running_loop().call_later(_GRACE_S, self._end_if_unwanted)

    def cancel(self) -> None:
        """Cancel the completion at once."""
        self._task.cancel()

    def _rest_at(self, anchor: Anchor, hash_of: HashOf) -> Suggestion | None:
        return self.part.rest_at(anchor, hash_of) if self.part is not None else None

    def _fits(self, typed: str | None) -> bool:
        if typed is None:
            return False
        shown = self.part.suggestion.text if self.part is not None else ""
        text = self._text + self._unsure
        return typed.startswith(text) or any(one.startswith(typed) for one in (text, shown))

    def _end_if_unwanted(self) -> None:
        is_seen = self.served is not None and not self._is_outdated(self.served)
        if not is_seen and self._num_waiting == 0:
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
            self._text, self._unsure = self._text + event.text, event.unsure
            if event.is_sure:
                self._extend(self._plan.beginning(self._text, event.id))
            self._wake()
        elif isinstance(event, Done):
            made = self._plan.suggestion(event)
            self._extend(made)
            reason = made if isinstance(made, Reason) else Reason.SUPERSEDED
            self._finish(self.part or reason)
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

    def _extend(self, made: Suggestion | Reason) -> None:
        """Show a longer text; one that changes what is shown is dropped."""
        if isinstance(made, Reason):
            return
        shown = self.part.suggestion.text if self.part is not None else ""
        if made.text != shown and made.text.startswith(shown):
            self.part = replace(self.place, suggestion=made)
            self._news(self)

    def _finish(self, end: PlacedSuggestion | Reason) -> None:
        if self.end is None:
            self.end = end
            del self._plan  # it holds large syntax trees
            self._wake()
            self._news(self)

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()
