"""From a cursor to the items that an editor shows, or to the reason why there are none."""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from lsprotocol import types

from engine.config import Sampling
from engine.host.protocol import Failed, Position
from lsp_server.completion.anchor import Anchor
from lsp_server.completion.cells_around import cells_around
from lsp_server.completion.completion_cache import CachedCompletion, CompletionCache
from lsp_server.completion.host_completions import HostCompletions, Retrieve, nothing_retrieved
from lsp_server.completion.in_flight import InFlightCompletion
from lsp_server.completion.item import LineEdit, inline_item
from lsp_server.documents.document import Snapshot
from lsp_server.documents.documents import Documents
from lsp_server.host.link import HostLink
from lsp_server.privacy.permissions import Permissions
from lsp_server.reasons import HOST_TROUBLES, WITHDRAWN, Reason, failure_reason, host_reason
from lsp_server.settings import Settings

_LONGEST_LINE = 100_000  # characters; nobody writes such a line by hand
_VARIETY = 0.8  # temperature of all candidates but the first
_THIRD_S = 3.0  # give up on a third candidate after this
_SECOND_S = 10.0  # give up on a second one after this; the user is waiting


@dataclass(frozen=True, slots=True)
class Answer:
    """Items, the best first, or why there are none."""

    items: tuple[types.InlineCompletionItem, ...] = ()
    reason: Reason | None = None


class InlineCompleter:
    """Answers the requests of one editor."""

    def __init__(
        self,
        documents: Documents,
        link: HostLink,
        permissions: Callable[[], Permissions],
        settings: Callable[[], Settings],
        line_end: Callable[[Snapshot], str],
        retrieve: Retrieve = nothing_retrieved,
    ) -> None:
        self._documents = documents
        self._link = link
        self._permissions = permissions
        self._settings = settings
        self._line_end = line_end
        self._cache = CompletionCache()
        self._last_positions: dict[str, Position] = {}  # by document
        self.host = HostCompletions(documents, link, self._cache, settings, retrieve)

    async def answer(self, params: types.InlineCompletionParams) -> Answer:
        """Answer from memory at once, else share what runs, else ask the host."""
        anchor = await self._anchor(params)
        if isinstance(anchor, Reason):
            return Answer(reason=anchor)
        self._last_positions[anchor.document.uri] = anchor.position
        silence, reason = self._silence(anchor.document), None
        if silence is not None and anchor.is_invoked:
            anchor = replace(anchor, is_invoked=False, is_guess=True)
        if anchor.is_invoked or not self._cache.remainders(anchor):
            if silence is not None and not anchor.is_guess:
                return Answer(reason=silence)
            reason = await self._complete(anchor)
        found = self._cache.remainders(anchor)
        if not found:
            # It is not sent if it became hidden meanwhile.
            if reason is Reason.HOST_FAILED and not self._is_outdated(anchor):
                reason = self._permissions().refusal(anchor.document) or reason
            return Answer(reason=reason or Reason.MODEL_SAID_NOTHING)
        if self._settings().speculate and silence is None:
            # `call_later`, not `call_soon`: the answer goes out first.
            asyncio.get_running_loop().call_later(0, self._prefetch, anchor, found[0])
        shown = _distinct(found) if anchor.is_invoked else found[:1]
        return Answer(tuple(self._item(anchor, one) for one in shown))

    def prefill(self, uri: str, position: Position) -> None:
        """Have the host read a prompt that is likely to be asked for."""
        snapshot = self._documents.snapshot(uri)
        if not isinstance(snapshot, Snapshot) or _is_long(snapshot, position.line):
            return
        if self.left_alone(uri) is None:
            self.host.prefill(snapshot, position)

    def prefill_again(self, uri: str) -> None:
        """Have the host read the prompt where this document was completed last.

        Other files may have changed meanwhile, which stand before it in the prompt.
        """
        if (position := self._last_positions.get(uri)) is not None:
            self.prefill(uri, position)

    def prefill_there(self, uri: str, position: types.Position) -> None:
        """Have the host read the prompt of a place that was not asked for last."""
        snapshot = self._documents.snapshot(uri)
        if isinstance(snapshot, Snapshot) and 0 <= position.line < len(snapshot.lines):
            there = snapshot.position(position)
            if self._last_positions.get(uri) != there:
                self.prefill(uri, there)

    def left_alone(self, uri: str) -> Reason | None:
        """Why nothing is written in a document by itself; None where something is."""
        snapshot = self._documents.snapshot(uri)
        if isinstance(snapshot, Reason):
            return snapshot
        return self._permissions().refusal(snapshot) or self._silence(snapshot)

    def configured(self) -> None:
        """The settings are others now: what was made by the former ones is shown no more."""
        self._cache.clear()

    def forget(self, uri: str) -> None:
        """A document was closed."""
        self._cache.forget(uri)
        self.host.forget(uri)
        self._last_positions.pop(uri, None)

    async def _anchor(self, params: types.InlineCompletionParams) -> Anchor | Reason:
        document, row = self._documents.snapshot(params.text_document.uri), params.position.line
        if isinstance(document, Reason):
            return document
        await self._permissions().look(self._documents.snapshots())
        if self._documents.snapshot(document.uri) is not document:
            return Reason.SUPERSEDED
        if _is_long(document, row):  # first: all else would look at the line
            return Reason.LINE_TOO_LONG
        if (reason := self._permissions().refusal(document)) is not None:
            return reason
        if not 0 <= row < len(document.lines):
            return Reason.BAD_POSITION
        return Anchor.at(params, document, cells_around(self._documents, document))

    def _silence(self, snapshot: Snapshot) -> Reason | None:
        """Why a document is completed only on request; a new cell of a notebook is no empty file."""
        reason = self._permissions().silence(snapshot)
        if reason is Reason.EMPTY_FILE and not cells_around(self._documents, snapshot).is_empty:
            return None
        return reason

    async def _complete(self, anchor: Anchor) -> Reason | None:
        """Complete; if the host ends in the middle of it, once more by the next host."""
        reason = await self._ask_host(anchor)
        if reason is Reason.HOST_UNREACHABLE and not self._is_outdated(anchor):
            reason = await self._ask_host(anchor)
        return reason

    async def _ask_host(self, anchor: Anchor) -> Reason | None:
        """Wait for a host, then complete, in several ways if the user asked."""
        state = await self._link.ready(lambda: not self._is_outdated(anchor))
        if state != "ready":
            return Reason.SUPERSEDED if self._is_outdated(anchor) else host_reason(state)
        await self._permissions().look(self._documents.snapshots())  # the wait may have been long
        settings = self._settings()
        if anchor.is_invoked:
            return await self._candidates(anchor, settings)
        if settings.debounce_ms:
            await asyncio.sleep(settings.debounce_ms / 1000)
        return await self._share_or_begin(anchor)

    async def _candidates(self, anchor: Anchor, settings: Settings) -> Reason | None:
        """Ask for several completions while that is quick; some turn out to be equal."""
        began = time.monotonic()
        reason = await self._begin(anchor)
        best = self._cache.remainders(anchor)[:1]
        for number in range(1, 2 * settings.num_candidates - 1):
            count = len(_distinct(self._cache.remainders(anchor)))
            is_late = time.monotonic() - began > (_THIRD_S if count > 1 else _SECOND_S)
            is_over = reason in HOST_TROUBLES | WITHDRAWN or reason is Reason.QUOTA
            if is_over or is_late or count >= settings.num_candidates:
                break
            varied = Sampling(_VARIETY, number)
            await self._begin(anchor, varied)
        for one in best:
            self._cache.prefer(one.completion_id)
        return reason

    async def _share_or_begin(self, anchor: Anchor) -> Reason | None:
        """Wait for a completion that matches: one that runs, or else a new one."""
        while (running := self.host.matching(anchor)) is not None:
            reason = await self._outcome(running, anchor)
            if self._cache.remainders(anchor):
                return None
            if reason in HOST_TROUBLES:
                return reason
            # By now the user may have typed all of it, or something else.
            is_its_own = running.anchor == anchor and not running.anchor.is_invoked
            if is_its_own and reason is not Reason.SUPERSEDED:
                return reason
        return await self._begin(anchor)

    async def _begin(self, anchor: Anchor, sampling: Sampling | None = None) -> Reason | None:
        if self._is_outdated(anchor):
            return Reason.SUPERSEDED
        return await self._outcome(self.host.begin(anchor, sampling), anchor)

    async def _outcome(self, running: InFlightCompletion, anchor: Anchor) -> Reason | None:
        outcome = await running.outcome(anchor)
        self.host.finished(running)
        if isinstance(outcome, Failed):
            return failure_reason(outcome.code)
        # None: the user typed something else than what is written.
        return Reason.SUPERSEDED if outcome is None else running.reason

    def _prefetch(self, anchor: Anchor, shown: CachedCompletion) -> None:
        if not self._is_outdated(anchor):
            self.host.prefetch(anchor, shown)

    def _is_outdated(self, anchor: Anchor) -> bool:
        then, now = anchor.document, self._documents.snapshot(anchor.document.uri)
        if isinstance(now, Reason):
            return True
        return (now.opening, now.version) != (then.opening, then.version)

    def _item(self, anchor: Anchor, rest: CachedCompletion) -> types.InlineCompletionItem:
        document = anchor.document
        edit = anchor.selected or LineEdit.at(anchor.position)
        edit = edit.followed_by(rest.text, rest.replaced_chars_after_cursor)
        return inline_item(edit, document, rest.completion_id, self._line_end(document))


def _distinct(found: Sequence[CachedCompletion]) -> list[CachedCompletion]:
    """The first, and those that no other one goes on with: what came by itself may end early."""
    texts = [one.text for one in found]
    return [
        *found[:1],
        *(
            one
            for one in found[1:]
            if not any(text != one.text and text.startswith(one.text) for text in texts)
        ),
    ]


def _is_long(snapshot: Snapshot, row: int) -> bool:
    return len(snapshot.line(row)) > _LONGEST_LINE
