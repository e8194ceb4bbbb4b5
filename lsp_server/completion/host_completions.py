"""The completions that the host is asked for: one for each document, and one prefetched."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing

from msgspec.structs import replace

from engine import FinishReason
from engine.config import Sampling, StopRules
from engine.host.protocol import CompleteEvent, CompleteRequest, Done, Position
from lsp_server.completion.anchor import Anchor
from lsp_server.completion.cells_around import cells_around
from lsp_server.completion.completion_cache import CachedCompletion, CompletionCache
from lsp_server.completion.cursor_context import CursorContext
from lsp_server.completion.in_flight import LOOK_S, InFlightCompletion
from lsp_server.completion.postprocess import process
from lsp_server.completion.syntax_judge import Judge, judge_of
from lsp_server.documents.document import Snapshot
from lsp_server.documents.documents import Documents
from lsp_server.host.link import HostLink, SendableSnippets
from lsp_server.prompt.place import BOUNDS, Place, place_by_text, scope_at
from lsp_server.prompt.syntax import Places
from lsp_server.reasons import Reason
from lsp_server.settings import Settings

_FEWEST_SHOWN = 3  # characters: fewer distract
_MOMENT_MS = 300.0  # in which a prompt is read, so that another one is no matter


# Says what the repository shows for a place: what of that may be sent is asked when it is.
Retrieve = Callable[[Anchor], Awaitable[SendableSnippets | None]]


async def nothing_retrieved(_anchor: Anchor) -> None:
    """There is no index."""


class HostCompletions:
    """Starts them, shares them, and puts what they write into the cache."""

    def __init__(
        self,
        documents: Documents,
        link: HostLink,
        cache: CompletionCache,
        settings: Callable[[], Settings],
        retrieve: Retrieve = nothing_retrieved,
    ) -> None:
        self.last: tuple[str, Done] | None = None  # of which document, and what was said
        self._documents = documents
        self._link = link
        self._cache = cache
        self._settings = settings
        self._retrieve = retrieve
        self._places = Places()
        self._running: dict[str, InFlightCompletion] = {}
        self._prefetch: InFlightCompletion | None = None
        self._prefill: InFlightCompletion | None = None

    @property
    def reads_quickly(self) -> bool:
        """Whether this host reads a whole prompt in a moment, as far as the last one tells."""
        if self.last is None:
            return False
        cost = self.last[1].cost
        num_read = max(cost.prompt_tokens - cost.reused_tokens, 1)
        return cost.prefill_ms / num_read * cost.prompt_tokens < _MOMENT_MS

    def matching(self, anchor: Anchor) -> InFlightCompletion | None:
        """What runs for this document or is prefetched, if its text may still be what is asked."""
        for one in (self._running.get(anchor.document.uri), self._prefetch):
            if one and not one.is_finished and one.may_serve(anchor):
                return one
        return None

    def begin(self, anchor: Anchor, sampling: Sampling | None) -> InFlightCompletion:
        """Start one in place of what runs for the document; `sampling` None is as the settings say."""
        uri = anchor.document.uri
        self._stop(uri)
        self._running[uri] = self._start(anchor, sampling)
        return self._running[uri]

    def prefetch(self, anchor: Anchor, shown: CachedCompletion) -> None:
        """Complete the text as it will be if what is shown is accepted; nobody waits for it."""
        anchor = anchor.accepting(shown.text, shown.replaced_chars_after_cursor)
        if self._cache.remainders(anchor):
            return
        ahead = self._prefetch
        # Typing along what is shown leads to the same text, in another version.
        if ahead is None or ahead.has_failed or ahead.anchor.typed_until(anchor) != "":
            self._end_ahead()
            self._prefetch = self._start(anchor, is_ahead=True)

    def prefill(self, snapshot: Snapshot, position: Position) -> None:
        """Have the host read a prompt that is likely to be asked for."""
        cells = cells_around(self._documents, snapshot)
        anchor = Anchor(snapshot, position, snapshot, position.line, cells=cells)
        running = self._running.get(snapshot.uri)
        if (running and not running.is_finished) or position.line >= len(snapshot.lines):
            return
        if self.matching(anchor) is not None:
            return  # what is prefetched has read it
        if self._prefill is not None:
            self._prefill.cancel()
        request = self._request(anchor, StopRules(max_tokens=0), is_ahead=True)
        self._prefill = InFlightCompletion(anchor, self._completed(request, anchor))

    def finished(self, completion: InFlightCompletion) -> None:
        """Drop one that has ended."""
        uri = completion.anchor.document.uri
        if self._running.get(uri) is completion and completion.is_finished:
            del self._running[uri]

    def catch_up(self, uri: str) -> bool:
        """Parse some of what was put off while the user typed; whether there is more."""
        return self._places.catch_up(uri)

    def forget(self, uri: str) -> None:
        """A document was closed."""
        self._places.forget(uri)
        self._stop(uri)

    def stop_all(self) -> None:
        """The editor disconnects."""
        for uri in list(self._running):
            self._stop(uri)
        self._end_ahead()

    def _stop(self, uri: str) -> None:
        if (former := self._running.pop(uri, None)) is not None:
            former.cancel()
        self._end_ahead()

    def _end_ahead(self) -> None:
        for one in (self._prefetch, self._prefill):
            if one is not None:
                one.cancel()
        self._prefetch = self._prefill = None

    def _start(
        self, anchor: Anchor, sampling: Sampling | None = None, *, is_ahead: bool = False
    ) -> InFlightCompletion:
        place = self._place(anchor)
        lines = "single" if anchor.is_guess else self._settings().lines
        scope = scope_at(place, lines, is_invoked=anchor.is_invoked, after_accept=is_ahead)
        context = CursorContext.of(
            anchor.snapshot.lines,
            anchor.position,
            scope=scope,
            language_id=anchor.document.language_id,
            is_in_comment=place is Place.COMMENT,
        )
        judge = self._judge(anchor, context)
        request = self._request(anchor, BOUNDS[scope], sampling, is_ahead=is_ahead)
        return InFlightCompletion(
            anchor,
            self._completed(request, anchor),
            on_first=judge.prepare,
            on_done=lambda done: self._keep(anchor, done, context, judge),
            rest_s=LOOK_S if is_ahead and self._link.is_shared else 0.0,
        )

    async def _completed(
        self, request: CompleteRequest, anchor: Anchor
    ) -> AsyncGenerator[CompleteEvent]:
        """What the host says once it is told what the repository shows there."""
        found = await self._retrieve(anchor)
        async with aclosing(self._link.complete(request, anchor.document, found)) as events:
            async for event in events:
                yield event

    def _request(
        self,
        anchor: Anchor,
        bounds: StopRules,
        sampling: Sampling | None = None,
        *,
        is_ahead: bool = False,
    ) -> CompleteRequest:
        settings = self._settings()
        return CompleteRequest(
            client="",  # the link knows the rest
            workspace="",
            uri=anchor.document.uri,
            version=0,
            position=anchor.position,
            overlay=anchor.overlay,
            above=anchor.cells.above,
            below=anchor.cells.below,
            layout=settings.layout,
            lookahead=settings.lookahead,
            sampling=sampling or Sampling(settings.temperature),
            stop=replace(
                bounds,
                max_tokens=min(bounds.max_tokens, settings.max_tokens),
                time_limit_ms=settings.time_limit_ms or bounds.time_limit_ms,
                # Who asks wants to see what there is.
                min_confidence=0.0 if anchor.is_invoked else settings.min_confidence,
            ),
            is_prefetch=is_ahead,
        )

    def _place(self, anchor: Anchor) -> Place:
        """By the syntax tree, which knows the editor's text alone, or else by the text."""
        snapshot, position = anchor.snapshot, anchor.position
        if snapshot is anchor.document:
            return self._places.place(snapshot, position)
        return place_by_text(snapshot.lines, position, snapshot.language_id)

    def _judge(self, anchor: Anchor, context: CursorContext) -> Judge:
        """What decides whether a completion breaks code: the parser where it can, or else the line."""
        line = self._places.parsed_line(anchor.document, anchor.row)
        above = anchor.snapshot.lines[anchor.row : anchor.position.line]
        return judge_of(line, context, "\n".join((*above, context.before)))

    def _keep(
        self, anchor: Anchor, done: Done, context: CursorContext, judge: Judge
    ) -> Reason | None:
        """Put what was written into the cache, or tell why it is nothing."""
        self.last = anchor.document.uri, done
        if done.finish_reason == FinishReason.CANCELLED:  # another request took the place
            return Reason.SUPERSEDED
        is_unsure = done.finish_reason == FinishReason.UNSURE
        if not done.text:
            return Reason.UNSURE if is_unsure else Reason.MODEL_SAID_NOTHING
        made = process(done.text, context, judge)
        if is_unsure and (
            made.reason is Reason.BREAKS_CODE  # what is left of it cannot stand
            or (made.reason is None and len(made.text.strip()) < _FEWEST_SHOWN)
        ):
            return Reason.UNSURE
        if made.reason is None:
            self._cache.remember(anchor, done.id, made.text, made.replaced_chars_after_cursor)
        return made.reason
