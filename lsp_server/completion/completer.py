"""Turns a cursor position into the items that an editor shows, or the reason for none."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace

from lsprotocol import types

from engine.config import Sampling
from lsp_server.completion.ahead import Ahead
from lsp_server.completion.in_flight import LOOK_S, InFlightCompletion
from lsp_server.completion.item import inline_item
from lsp_server.completion.plan import Plan
from lsp_server.completion.suggestions import PlacedSuggestion, Suggestion, SuggestionCache
from lsp_server.documents.anchor import Anchor
from lsp_server.documents.cells_around import cells_around
from lsp_server.host.link import HostLink
from lsp_server.prompt.syntax import Places
from lsp_server.reasons import HOST_TROUBLES, TRIED_AGAIN, WITHDRAWN, Reason, host_reason
from lsp_server.workspace import Workspace

_VARIETY = 0.8  # temperature of all candidates but the first
_THIRD_S = 3.0  # seconds after which a third candidate is not requested
_SECOND_S = 10.0  # seconds after which a second candidate is not requested; the user waits


class InlineCompleter:
    """Answers from memory or the host, which writes one completion per document and one ahead."""

    def __init__(
        self, workspace: Workspace, link: HostLink, has_more: Callable[[str, int], None]
    ) -> None:
        """`has_more` is called with a document and its version, once more than it shows is there."""
        self._workspace = workspace
        self._link = link
        self._has_more = has_more
        self.cache = SuggestionCache()
        self.places = Places()
        self._running: dict[str, InFlightCompletion] = {}  # by document
        self.ahead = Ahead(workspace, link, self.cache, self)

    async def answer(
        self, params: types.InlineCompletionParams
    ) -> list[types.InlineCompletionItem] | Reason:
        """Return the items, best first, or why there are none."""
        anchor = await self._anchor(params)
        if isinstance(anchor, Reason):
            return anchor
        self.ahead.note(anchor)
        silence = self._workspace.silence(anchor.document)
        if silence is not None and anchor.is_invoked:
            anchor = replace(anchor, is_invoked=False, is_guess=True)
        found: list[Suggestion] | Reason = self.cache.suggestions(anchor)
        if anchor.is_invoked or not found:
            if silence is not None and not anchor.is_guess:
                return silence
            found = await self._ask(anchor)
        if isinstance(found, Reason):
            # A document that became hidden meanwhile is not sent, so report that instead.
            if found is Reason.HOST_FAILED and not self._workspace.is_outdated(anchor):
                return self._workspace.permissions.refusal(anchor.document) or found
            return found
        if (running := self.matching(anchor)) is not None:
            running.served = anchor
        # Unlike `call_soon`, `call_later` lets the answer go out first.
        asyncio.get_running_loop().call_later(0, self.ahead.follow, anchor, found[0])
        shown = found if anchor.is_invoked else found[:1]
        line_end = self._workspace.line_end(anchor.document)
        return [inline_item(anchor, one, line_end) for one in shown]

    def changed(self, uri: str) -> None:
        """Note an edit: what runs on needs another request, of which the text still matches."""
        self.ahead.end_rest()
        for one in (self._running.get(uri), self.ahead.completion):
            if one is not None and one.served is not None and one.served.document.uri == uri:
                one.doubt()

    def forget(self, uri: str) -> None:
        """Forget a closed document."""
        self.cache.forget(uri)
        self.places.forget(uri)
        self.ahead.forget(uri)
        self._stop(uri)

    def stop_all(self) -> None:
        """Cancel all completions, and drop what was written: other settings make it otherwise."""
        self.cache.clear()
        self.ahead.end_rest()  # or what is cancelled would have it read
        for uri in list(self._running):
            self._stop(uri)
        self.ahead.stop()

    async def _anchor(self, params: types.InlineCompletionParams) -> Anchor | Reason:
        documents, row = self._workspace.documents, params.position.line
        document = documents.snapshot(params.text_document.uri)
        if isinstance(document, Reason):
            return document
        await self._workspace.look()
        if documents.snapshot(document.uri) is not document:
            return Reason.SUPERSEDED
        if document.is_long(row):  # first, because the other checks would read the line
            return Reason.LINE_TOO_LONG
        if (reason := self._workspace.permissions.refusal(document)) is not None:
            return reason
        if not 0 <= row < len(document.lines):
            return Reason.BAD_POSITION
        return Anchor.at(params, document, cells_around(documents, document))

    async def _ask(self, anchor: Anchor) -> list[Suggestion] | Reason:
        """Wait for a host and complete; if it dies halfway, try the next one once."""
        found: list[Suggestion] | Suggestion | Reason = Reason.HOST_UNREACHABLE
        for _ in range(2):
            state = await self._link.search.ready(lambda: not self._workspace.is_outdated(anchor))
            if state != "ready":
                is_outdated = self._workspace.is_outdated(anchor)
                return Reason.SUPERSEDED if is_outdated else host_reason(state)
            await self._workspace.look()  # permissions may have changed during a long wait
            if anchor.is_invoked:
                found = await self._candidates(anchor)
            else:
                found = await self._joined(anchor) or await self._begun(anchor)
            if found is not Reason.HOST_UNREACHABLE or self._workspace.is_outdated(anchor):
                break
        return [found] if isinstance(found, Suggestion) else found

    async def _joined(self, anchor: Anchor) -> Suggestion | Reason | None:
        """Return the outcome of a matching running completion; None if a new one must begin."""
        if wait_ms := self._workspace.settings.debounce_ms:
            await asyncio.sleep(wait_ms / 1000)
        while (running := self.matching(anchor)) is not None:
            outcome = await running.outcome(anchor)
            # Meanwhile the user may have typed all of it, or something else.
            is_its_own = running.anchor == anchor and not running.anchor.is_invoked
            is_final = outcome in HOST_TROUBLES or (is_its_own and outcome is not Reason.SUPERSEDED)
            if is_final or isinstance(outcome, Suggestion):
                return outcome
        return None

    async def _candidates(self, anchor: Anchor) -> list[Suggestion] | Reason:
        """Request several completions while that is quick, as some turn out to be equal."""
        began, wanted = time.monotonic(), self._workspace.settings.num_candidates
        outcome = await self._begun(anchor)
        if is_another := outcome in TRIED_AGAIN:
            sampling = Sampling(self._workspace.settings.temperature).another
            another = await self._begun(anchor, sampling)
            outcome = outcome if another in TRIED_AGAIN else another
        best = self.cache.suggestions(anchor)[:1]
        for number in range(1, 2 * wanted - 1):
            count = len(_distinct(self.cache.suggestions(anchor)))
            is_late = time.monotonic() - began > (_THIRD_S if count > 1 else _SECOND_S)
            is_over = outcome in HOST_TROUBLES | WITHDRAWN or outcome is Reason.QUOTA
            if is_over or is_late or count >= wanted:
                break
            await self._begun(anchor, Sampling(_VARIETY, number, is_another))
        for one in best:
            self.cache.prefer(one.completion_id)
        found = _distinct(self.cache.suggestions(anchor))
        # A suggestion missing from the cache was made with settings that have since changed.
        return found or (outcome if isinstance(outcome, Reason) else Reason.MODEL_SAID_NOTHING)

    async def _begun(self, anchor: Anchor, sampling: Sampling | None = None) -> Suggestion | Reason:
        if self._workspace.is_outdated(anchor):
            return Reason.SUPERSEDED
        self._stop(anchor.document.uri)
        running = self._running[anchor.document.uri] = self.started(anchor, sampling)
        return await running.outcome(anchor)

    def is_busy(self, uri: str) -> bool:
        """Whether the host writes a completion that was asked for in a document."""
        running = self._running.get(uri)
        return running is not None and running.end is None

    def matching(self, anchor: Anchor) -> InFlightCompletion | None:
        """Return a running completion that still fits, also one ahead."""
        for one in (self._running.get(anchor.document.uri), self.ahead.completion):
            if one and one.end is None and one.may_serve(anchor):
                return one
        return None

    def started(
        self,
        anchor: Anchor,
        sampling: Sampling | None = None,
        *,
        is_prefetch: bool = False,
        is_ahead: bool = False,
    ) -> InFlightCompletion:
        """Start a completion; `is_ahead`: of text that is not in the document."""
        plan = Plan.at(anchor, self.places, self._workspace.settings, is_ahead=is_ahead)
        events = self._link.complete(anchor, plan.stop, sampling, is_prefetch=is_prefetch)
        rest_s = LOOK_S if is_ahead and self._link.search.is_shared else 0.0
        return InFlightCompletion(
            plan, events, self._take_news, self._workspace.is_outdated, rest_s
        )

    def _take_news(self, one: InFlightCompletion) -> None:
        """Remember a longer part and tell the client; at the end, have the host go on behind it."""
        served = one.served
        if one.end is None and one.part is not None:
            self.cache.remember(one.part)
        if one.end is not None:
            asyncio.get_running_loop().call_soon(self.ahead.go_on)
        if served is None or self._workspace.is_outdated(served):
            return
        if one.end is None:
            self._has_more(served.document.uri, served.document.version)
        elif isinstance(one.end, PlacedSuggestion) and (found := self.cache.suggestions(served)):
            self.ahead.follow(served, found[0])

    def _stop(self, uri: str) -> None:
        if (former := self._running.pop(uri, None)) is not None:
            former.cancel()
        self.ahead.stop()


def _distinct(found: list[Suggestion]) -> list[Suggestion]:
    def is_beginning(one: Suggestion) -> bool:
        return any(other.text != one.text and other.text.startswith(one.text) for other in found)

    return found[:1] + [one for one in found[1:] if not is_beginning(one)]
