"""The completions that a host is asked for: one for each document, and one ahead of the user."""

from collections.abc import Callable

from engine.host.protocol import Bounds, CompleteRequest, Done, LineSplice, Position, Sampled
from lsp_server.completion.cursor import Cursor, Origin, accepted
from lsp_server.completion.generation import NOBODY, Generation, Reader
from lsp_server.completion.judge import Judge, LineJudge
from lsp_server.completion.postprocess import process
from lsp_server.completion.surroundings import Surroundings
from lsp_server.completion.syntax_judge import SyntaxJudge
from lsp_server.completion.type_through import Remainder, TypeThrough
from lsp_server.documents.document import Snapshot
from lsp_server.documents.documents import Documents
from lsp_server.host.link import HostLink
from lsp_server.prompt.extent import Trigger, bounds_for, extent_at
from lsp_server.prompt.place import Place
from lsp_server.prompt.places import Places
from lsp_server.prompt.text_place import place_by_text
from lsp_server.reasons import Reason
from lsp_server.settings import Settings

CANCELLED = "cancelled"  # as the host ends what others go before


class Generations:
    """Starts them, shares them, and puts what they write into `known`."""

    def __init__(
        self,
        documents: Documents,
        link: HostLink,
        known: TypeThrough,
        settings: Callable[[], Settings],
    ) -> None:
        self.last: tuple[str, Done] | None = None  # of which document, and what was said
        self._link = link
        self._known = known
        self._settings = settings
        self._places = Places(documents.splices_since)
        self._running: dict[str, Generation] = {}
        self._ahead: Generation | None = None
        self._reading: Generation | None = None

    def joinable(self, origin: Origin) -> Generation | None:
        """What runs for this document or ahead of it, if its text may still be what is asked."""
        for one in (self._running.get(origin.snapshot.uri), self._ahead):
            if one and not one.is_finished and one.may_serve(origin.snapshot, origin.position):
                return one
        return None

    def begin(self, cursor: Cursor, sampling: Sampled | None) -> Generation:
        """Start one in place of what runs for the document; `sampling` None is as the settings say."""
        self._stop(cursor.snapshot.uri)
        origin = cursor.origin
        if cursor.selected is None:
            place = self._places.place(origin.snapshot, origin.position)
        else:  # the tree knows the editor's text alone
            place = _place_by_text(origin)
        around = _surroundings(origin, place, cursor.trigger, after_accept=False)
        generation = self._generation(
            origin,
            cursor.snapshot,
            cursor.overlay,
            bounds_for(cursor.trigger, place),
            self._reader(origin, around, self._judge(cursor.snapshot, origin, around)),
            sampling=sampling,
        )
        self._running[cursor.snapshot.uri] = generation
        return generation

    def look_ahead(self, cursor: Cursor, shown: Remainder) -> None:
        """Complete the text as it will be if what is shown is accepted; nobody waits for it."""
        origin = accepted(cursor.origin, shown)
        if self._known.remainders(origin.snapshot, origin.position):
            return
        if self._ahead is not None and self._ahead.origin == origin:
            return
        lines, row = origin.snapshot.lines, cursor.origin.position.line
        num_added = len(lines) - len(cursor.origin.snapshot.lines)
        overlay = (LineSplice(row, row + 1, lines[row : row + 1 + num_added]),)
        place = _place_by_text(origin)
        around = _surroundings(origin, place, Trigger.AUTOMATIC, after_accept=True)
        bounds = bounds_for(Trigger.AUTOMATIC, place, after_accept=True)
        row = cursor.origin.position.line
        reader = self._reader(origin, around, self._judge(cursor.snapshot, origin, around, row))
        self._end_ahead()
        self._ahead = self._generation(origin, cursor.snapshot, overlay, bounds, reader, ahead=True)

    def prefill(self, snapshot: Snapshot, position: Position) -> None:
        """Have the host read a prompt that is likely to be asked for."""
        origin = Origin(snapshot, position)
        if snapshot.uri in self._running or position.line >= len(snapshot.lines):
            return
        if self.joinable(origin) is not None:
            return  # what runs ahead has read it
        if self._reading is not None:
            self._reading.cancel()
        self._reading = self._generation(
            origin, snapshot, (), Bounds(max_tokens=0), NOBODY, ahead=True
        )

    def finished(self, generation: Generation) -> None:
        """Drop one that has ended."""
        uri = generation.origin.snapshot.uri
        if self._running.get(uri) is generation and generation.is_finished:
            del self._running[uri]

    def catch_up(self, uri: str) -> None:
        """Do what was put off while the user typed."""
        self._places.catch_up(uri)

    def forget(self, uri: str) -> None:
        """A document was closed."""
        self._places.forget(uri)
        self._stop(uri)

    def stop_all(self) -> None:
        """The editor goes."""
        for uri in list(self._running):
            self._stop(uri)
        self._end_ahead()

    def _stop(self, uri: str) -> None:
        if (former := self._running.pop(uri, None)) is not None:
            former.cancel()
        self._end_ahead()

    def _end_ahead(self) -> None:
        for one in (self._ahead, self._reading):
            if one is not None:
                one.cancel()
        self._ahead = self._reading = None

    def _generation(
        self,
        origin: Origin,
        held: Snapshot,
        overlay: tuple[LineSplice, ...],
        bounds: Bounds,
        reader: Reader,
        *,
        sampling: Sampled | None = None,
        ahead: bool = False,
    ) -> Generation:
        """Ask the host for a completion at `origin`, whose text is `held` with the overlay."""
        settings = self._settings()
        request = CompleteRequest(
            client="",  # the link knows the rest
            workspace="",
            uri=held.uri,
            version=0,
            position=origin.position,
            overlay=overlay,
            layout=settings.layout,
            lookahead=settings.lookahead,
            sampling=sampling or Sampled(settings.temperature, settings.seed),
            bounds=Bounds(
                max_tokens=min(bounds.max_tokens, settings.max_tokens),
                single_line=bounds.single_line,
                time_limit_ms=settings.time_limit_ms or bounds.time_limit_ms,
                min_margin=bounds.min_margin,
            ),
            is_speculative=ahead,
        )
        return Generation(origin, self._link.complete(request, held), reader)

    def _judge(
        self, held: Snapshot, origin: Origin, around: Surroundings, row: int | None = None
    ) -> Judge:
        """Who knows whether code breaks at `origin`, whose text is `held` but from line `row` on."""
        row = origin.position.line if row is None else row
        line = self._places.parsed_line(held, row)
        if line is None:
            return LineJudge(around)
        above = origin.snapshot.lines[row : origin.position.line]
        return SyntaxJudge(line, around, "\n".join((*above, around.before)))

    def _reader(self, origin: Origin, around: Surroundings, judge: Judge) -> Reader:
        """Remembers what was written, or tells why it is nothing."""

        def finish(done: Done) -> Reason | None:
            self.last = origin.snapshot.uri, done
            if done.finish_reason == CANCELLED:
                return Reason.SUPERSEDED
            if not done.text:
                return Reason.MODEL_SAID_NOTHING
            made = process(done.text, around, judge)
            if made.reason is None:
                place = (origin.snapshot, origin.position)
                self._known.remember(*place, done.id, made.text, made.replaced_chars_after_cursor)
            return made.reason

        return Reader(judge.prepare, finish)


def _place_by_text(origin: Origin) -> Place:
    snapshot = origin.snapshot
    return place_by_text(snapshot.lines, origin.position, snapshot.language_id)


def _surroundings(
    origin: Origin, place: Place, trigger: Trigger, *, after_accept: bool
) -> Surroundings:
    return Surroundings.of(
        origin.snapshot.lines,
        origin.position,
        extent=extent_at(trigger, place, after_accept=after_accept),
        language_id=origin.snapshot.language_id,
    )
