"""From a cursor to the items that an editor shows, or to the reason why there are none."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from lsprotocol import types

from engine.host.protocol import (
    Bounds,
    CompleteRequest,
    Done,
    Failed,
    LineSplice,
    Position,
    Sampled,
)
from lsp_server.completion.cursor import Asked, Cursor, Origin, accepted
from lsp_server.completion.generation import Generation
from lsp_server.completion.item import Insertion, inline_item
from lsp_server.completion.postprocess import Processed, process
from lsp_server.completion.reasons import Reason
from lsp_server.completion.surroundings import Surroundings
from lsp_server.completion.type_through import Remainder, TypeThrough
from lsp_server.documents.document import Snapshot
from lsp_server.documents.documents import DocumentRefused, Documents, RefusalReason
from lsp_server.documents.encoding import from_code_points
from lsp_server.host_link import HostLink
from lsp_server.permissions import Permissions
from lsp_server.prompt.extent import Trigger, bounds_for, extent_at
from lsp_server.prompt.place import Place
from lsp_server.prompt.syntax import DocumentSyntax
from lsp_server.prompt.text_place import place_by_text
from lsp_server.settings import Settings

_READY_S = 20.0  # a request waits for so long while the model is loaded
_GREEDY = Sampled()
_VARIETY = 0.8  # temperature of all candidates but the first
_REFUSALS: dict[RefusalReason, Reason] = {
    "unknown": Reason.UNKNOWN_DOCUMENT,
    "too large": Reason.TOO_LARGE,
    "binary": Reason.BINARY,
    "stale version": Reason.OUT_OF_STEP,
    "out of step": Reason.OUT_OF_STEP,
}
_FAILURES = {
    "cancelled": Reason.SUPERSEDED,
    "host_gone": Reason.HOST_UNREACHABLE,
    "loading": Reason.HOST_LOADING,
    "stopped": Reason.HOST_UNREACHABLE,
    "stopping": Reason.HOST_UNREACHABLE,
    "superseded": Reason.SUPERSEDED,
}


@dataclass(frozen=True, slots=True)
class Answer:
    """Items, the best first, or why there are none."""

    items: tuple[types.InlineCompletionItem, ...] = ()
    reason: Reason | None = None


@dataclass(slots=True)
class _FollowedSyntax:
    """A document's tree and the version that it was read at."""

    syntax: DocumentSyntax
    opening: int
    version: int


class Completer:
    """Answers requests of one editor; one generation at a time for each document."""

    def __init__(
        self,
        documents: Documents,
        link: HostLink,
        permissions: Callable[[], Permissions],
        settings: Callable[[], Settings],
        line_end: Callable[[Snapshot], str],
    ) -> None:
        self._documents = documents
        self._link = link
        self._permissions = permissions
        self._settings = settings
        self._line_end = line_end
        self.last: Done | None = None
        self._known = TypeThrough()
        self._running: dict[str, Generation] = {}
        self._ahead: Generation | None = None
        self._syntaxes: dict[str, _FollowedSyntax] = {}

    async def answer(self, asked: Asked) -> Answer:
        """Answer from memory at once, else join what runs, else ask the host."""
        cursor = self._cursor(asked)
        if isinstance(cursor, Reason):
            return Answer(reason=cursor)
        if not (found := self._found(cursor)) or asked.trigger is Trigger.INVOKED:
            reason = await self._generated(cursor)
            found = self._found(cursor)
            if not found:
                return Answer(reason=reason or Reason.MODEL_SAID_NOTHING)
        if self._settings().speculate:
            self._look_ahead(cursor, found[0])
        items = [item for one in found if (item := self._item(cursor, one))]
        if not items:
            return Answer(reason=Reason.MENU_DISAGREES)
        return Answer(tuple(items if asked.trigger is Trigger.INVOKED else items[:1]))

    def prefill(self, uri: str, position: Position) -> None:
        """Have the host read a prompt that is likely to be asked for."""
        snapshot = self._documents.snapshot(uri)
        if isinstance(snapshot, DocumentRefused) or self._permissions().refusal(snapshot):
            return
        if position.line < len(snapshot.lines) and uri not in self._running:
            origin = Origin(snapshot, position)
            bounds = Bounds(max_tokens=0)
            self._set_ahead(self._generation(origin, snapshot, (), bounds, _nothing, ahead=True))

    def forget(self, uri: str) -> None:
        """A document was closed."""
        self._known.forget(uri)
        self._syntaxes.pop(uri, None)
        if (generation := self._running.pop(uri, None)) is not None:
            generation.cancel()

    def cancel_all(self) -> None:
        """The editor goes."""
        self._set_ahead(None)
        for generation in self._running.values():
            generation.cancel()

    def _cursor(self, asked: Asked) -> Cursor | Reason:
        snapshot = self._documents.snapshot(asked.uri)
        if isinstance(snapshot, DocumentRefused):
            return _REFUSALS[snapshot.reason]
        if (reason := self._permissions().refusal(snapshot)) is not None:
            return reason
        if not 0 <= asked.position.line < len(snapshot.lines):
            return Reason.BAD_POSITION
        return Cursor.of(asked, snapshot)

    def _found(self, cursor: Cursor) -> list[Remainder]:
        """Known completions that fit, each text once, the oldest first: it is the greedy one."""
        found = self._known.remainders(cursor.origin.snapshot, cursor.origin.position)
        newest = {one.text: one for one in found}
        if cursor.trigger is Trigger.AUTOMATIC:
            return found[:1]
        return list(reversed(newest.values()))

    async def _generated(self, cursor: Cursor) -> Reason | None:
        """Have a completion written, or more of them for who asks; why there is none."""
        settings = self._settings()
        if cursor.trigger is Trigger.AUTOMATIC and settings.debounce_ms:
            await asyncio.sleep(settings.debounce_ms / 1000)
        if not await self._link.ready(_READY_S):
            return Reason.HOST_UNREACHABLE if self._link.reason else Reason.HOST_LOADING
        reason = await self._written(cursor, Sampled(settings.temperature, settings.seed))
        if cursor.trigger is Trigger.INVOKED and reason is None:
            for seed in range(1, settings.num_candidates):
                await self._written(cursor, Sampled(_VARIETY, settings.seed + seed))
        return reason

    async def _written(self, cursor: Cursor, sampling: Sampled) -> Reason | None:
        """Wait for a generation that fits, one that runs or a new one."""
        origin, uri = cursor.origin, cursor.snapshot.uri
        while True:
            if self._is_outdated(cursor.snapshot):
                return Reason.SUPERSEDED
            generation = self._joinable(origin) or self._begin(cursor, sampling)
            outcome = await generation.outcome(origin.snapshot, origin.position)
            if self._running.get(uri) is generation and generation.is_finished:
                del self._running[uri]
            if isinstance(outcome, Failed):
                return _FAILURES.get(outcome.code, Reason.HOST_FAILED)
            # Who joined may have typed all of it; then there is more to write.
            if isinstance(outcome, Done) and (generation.origin == origin or self._found(cursor)):
                return generation.reason

    def _is_outdated(self, snapshot: Snapshot) -> bool:
        now = self._documents.snapshot(snapshot.uri)
        return isinstance(now, DocumentRefused) or (now.opening, now.version) != (
            snapshot.opening,
            snapshot.version,
        )

    def _joinable(self, origin: Origin) -> Generation | None:
        """What runs for this document or ahead of it, if its text may still be what is asked."""
        for generation in (self._running.get(origin.snapshot.uri), self._ahead):
            if (
                generation is not None
                and not generation.is_finished
                and generation.may_serve(origin.snapshot, origin.position)
            ):
                return generation
        return None

    def _begin(self, cursor: Cursor, sampling: Sampled) -> Generation:
        """Start a generation in place of what runs for the document."""
        origin, uri = cursor.origin, cursor.snapshot.uri
        if (former := self._running.pop(uri, None)) is not None:
            former.cancel()
        self._set_ahead(None)
        place = self._place(cursor)
        around = Surroundings.of(
            origin.snapshot.lines,
            origin.position,
            extent=extent_at(cursor.trigger, place),
            language_id=origin.snapshot.language_id,
        )
        bounds = self._bounds(bounds_for(cursor.trigger, place))
        self._running[uri] = self._generation(
            origin,
            cursor.snapshot,
            cursor.overlay,
            bounds,
            self._finisher(origin, around),
            sampling=sampling,
        )
        return self._running[uri]

    def _look_ahead(self, cursor: Cursor, shown: Remainder) -> None:
        """Complete the text as it will be if what is shown is accepted; nobody waits for it."""
        origin = accepted(cursor.origin, shown)
        if self._known.remainders(origin.snapshot, origin.position):
            return
        if self._ahead is not None and self._ahead.origin == origin:
            return
        lines, row = origin.snapshot.lines, cursor.origin.position.line
        num_added = len(lines) - len(cursor.origin.snapshot.lines)
        overlay = (LineSplice(row, row + 1, lines[row : row + 1 + num_added]),)
        place = place_by_text(lines, origin.position, origin.snapshot.language_id)
        extent = extent_at(Trigger.AUTOMATIC, place, after_accept=True)
        around = Surroundings.of(
            lines, origin.position, extent=extent, language_id=origin.snapshot.language_id
        )
        bounds = self._bounds(bounds_for(Trigger.AUTOMATIC, place, after_accept=True))
        finish = self._finisher(origin, around)
        self._set_ahead(
            self._generation(origin, cursor.snapshot, overlay, bounds, finish, ahead=True)
        )

    def _set_ahead(self, generation: Generation | None) -> None:
        if self._ahead is not None:
            self._ahead.cancel()
        self._ahead = generation

    def _generation(
        self,
        origin: Origin,
        held: Snapshot,
        overlay: tuple[LineSplice, ...],
        bounds: Bounds,
        finish: Callable[[Done], Reason | None],
        *,
        sampling: Sampled = _GREEDY,
        ahead: bool = False,
    ) -> Generation:
        """Ask the host for a completion at `origin`, whose text is `held` with the overlay."""
        settings = self._settings()
        request = CompleteRequest(
            client="",
            workspace="",
            uri=origin.snapshot.uri,
            version=0,
            position=origin.position,
            overlay=overlay,
            layout=settings.layout,
            lookahead=settings.lookahead,
            sampling=sampling,
            bounds=bounds,
            is_speculative=ahead,
        )
        return Generation(origin, self._link.complete(request, held), finish)

    def _finisher(self, origin: Origin, around: Surroundings) -> Callable[[Done], Reason | None]:
        """Remember what was written, or tell why it is nothing."""

        def finish(done: Done) -> Reason | None:
            self.last = done
            if not done.text:
                return Reason.MODEL_SAID_NOTHING
            made = process(done.text, around)
            if made.reason is None:
                replaced = made.replaced_chars_after_cursor
                place = (origin.snapshot, origin.position)
                self._known.remember(*place, done.id, made.text, replaced)
            return made.reason

        return finish

    def _bounds(self, bounds: Bounds) -> Bounds:
        settings = self._settings()
        return Bounds(
            max_tokens=min(bounds.max_tokens, settings.max_tokens),
            single_line=bounds.single_line,
            time_limit_ms=settings.time_limit_ms or bounds.time_limit_ms,
        )

    def _place(self, cursor: Cursor) -> Place:
        """Where the cursor stands, by the tree that follows the document's edits."""
        snapshot, position = cursor.origin.snapshot, cursor.origin.position
        if cursor.selected is not None:
            return place_by_text(snapshot.lines, position, snapshot.language_id)
        followed = self._syntaxes.get(snapshot.uri)
        splices = None
        if followed is not None and followed.opening == snapshot.opening:
            splices = self._documents.splices_since(snapshot.uri, followed.version)
        else:
            followed = _FollowedSyntax(DocumentSyntax(snapshot.language_id), 0, 0)
        place = followed.syntax.place(snapshot.lines, position, splices)
        followed.opening, followed.version = snapshot.opening, snapshot.version
        self._syntaxes[snapshot.uri] = followed
        return place

    def _item(self, cursor: Cursor, rest: Remainder) -> types.InlineCompletionItem | None:
        settings, snapshot = self._settings(), cursor.snapshot
        position = cursor.origin.position
        processed = Processed(rest.text, rest.replaced_chars_after_cursor)
        if cursor.selected is not None:
            insertion = cursor.selected.followed_by(position.line, processed)
        else:
            insertion = Insertion.at_cursor(position, processed)
        line = snapshot.line(position.line)
        if settings.range_from_line_start:
            insertion = insertion.from_line_start(line)
        return inline_item(
            insertion,
            line_text=line,
            to_client=lambda text, points: from_code_points(text, points, snapshot.encoding),
            completion_id=rest.completion_id,
            line_end=self._line_end(snapshot),
            accept_command=settings.accept_command,
        )


def _nothing(_done: Done) -> None:
    """A prompt was read; there is no text to remember."""
