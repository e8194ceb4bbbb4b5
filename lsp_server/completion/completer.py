"""From a cursor to the items that an editor shows, or to the reason why there are none."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass

from lsprotocol import types

from engine.host.protocol import Done, Failed, Position, Sampled
from lsp_server.completion.cursor import Asked, Cursor
from lsp_server.completion.generation import Generation
from lsp_server.completion.generations import Generations
from lsp_server.completion.item import Insertion, inline_item
from lsp_server.completion.type_through import Remainder, TypeThrough
from lsp_server.documents.document import Snapshot
from lsp_server.documents.documents import DocumentRefused, Documents
from lsp_server.documents.encoding import from_code_points
from lsp_server.host.link import HostLink
from lsp_server.privacy.permissions import Permissions
from lsp_server.prompt.extent import Trigger
from lsp_server.reasons import HOST_TROUBLES, WITHDRAWN, Reason, failure_reason, host_reason
from lsp_server.settings import Settings

_LONGEST_LINE = 100_000  # characters; nobody writes such a line by hand
_VARIETY = 0.8  # temperature of all candidates but the first
_VARIETY_S = 3.0  # after this no third candidate is begun
_SECOND_S = 10.0  # and after this no second one, which who asks is waiting for


@dataclass(frozen=True, slots=True)
class Answer:
    """Items, the best first, or why there are none."""

    items: tuple[types.InlineCompletionItem, ...] = ()
    reason: Reason | None = None


class Completer:
    """Answers the requests of one editor."""

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
        self._known = TypeThrough()
        self._last_places: dict[str, Position] = {}  # by document
        self._generations = Generations(documents, link, self._known, settings)

    @property
    def last(self) -> tuple[str, Done] | None:
        """Which document the host's last completion was of, and what it said of it."""
        return self._generations.last

    async def answer(self, asked: Asked) -> Answer:
        """Answer from memory at once, else join what runs, else ask the host."""
        cursor = self._cursor(asked)
        if isinstance(cursor, Reason):
            return Answer(reason=cursor)
        self._last_places[asked.uri] = cursor.origin.position
        silence, reason = self._permissions().silence(cursor.snapshot), None
        if asked.trigger is Trigger.INVOKED or not self._found(cursor):
            if silence is not None and asked.trigger is not Trigger.INVOKED:
                return Answer(reason=silence)
            reason = await self._generated(cursor)
        found = self._found(cursor)
        if not found:
            return Answer(reason=reason or Reason.MODEL_SAID_NOTHING)
        if self._settings().speculate and silence is None:
            # Later than soon: the answer goes out first.
            loop = asyncio.get_running_loop()
            loop.call_later(0, self._look_ahead, cursor, found[0])
        shown = found if asked.trigger is Trigger.INVOKED else found[:1]
        return Answer(tuple(self._item(cursor, one) for one in shown))

    def prefill(self, uri: str, position: Position) -> None:
        """Have the host read a prompt that is likely to be asked for."""
        snapshot = self._documents.snapshot(uri)
        if not isinstance(snapshot, Snapshot) or _is_long(snapshot, position.line):
            return
        if self.left_alone(uri) is None:
            self._generations.prefill(snapshot, position)

    def read_again(self, uri: str) -> None:
        """Have the host read the prompt where this document was completed last.

        Other files may have changed meanwhile, which stand before it in the prompt.
        """
        if (position := self._last_places.get(uri)) is not None:
            self.prefill(uri, position)

    def left_alone(self, uri: str) -> Reason | None:
        """Why nothing is written in a document by itself; None where something is."""
        snapshot = self._documents.snapshot(uri)
        if isinstance(snapshot, DocumentRefused):
            return snapshot.reason
        permissions = self._permissions()
        return permissions.refusal(snapshot) or permissions.silence(snapshot)

    def hindrance(self, uri: str) -> Reason | None:
        """Why nothing would be written now: the document's reason, or the host's."""
        return self.left_alone(uri) or host_reason(self._link.state)

    def catch_up(self, uri: str) -> None:
        """Do what was put off while the user typed."""
        self._generations.catch_up(uri)

    def forget(self, uri: str) -> None:
        """A document was closed."""
        self._known.forget(uri)
        self._generations.forget(uri)
        self._last_places.pop(uri, None)

    def stop_all(self) -> None:
        """The editor goes."""
        self._generations.stop_all()

    def _cursor(self, asked: Asked) -> Cursor | Reason:
        snapshot = self._documents.snapshot(asked.uri)
        if isinstance(snapshot, DocumentRefused):
            return snapshot.reason
        if _is_long(snapshot, asked.position.line):  # first: all else would look at the line
            return Reason.LINE_TOO_LONG
        if (reason := self._permissions().refusal(snapshot)) is not None:
            return reason
        if not 0 <= asked.position.line < len(snapshot.lines):
            return Reason.BAD_POSITION
        return Cursor.of(asked, snapshot)

    def _found(self, cursor: Cursor) -> list[Remainder]:
        """Known completions that fit, the newest first."""
        return self._known.remainders(cursor.origin.snapshot, cursor.origin.position)

    async def _generated(self, cursor: Cursor) -> Reason | None:
        """Have a completion written; where the host ends in the middle of it, by the next one."""
        reason = await self._asked_of_host(cursor)
        if reason is Reason.HOST_UNREACHABLE and not self._is_outdated(cursor.snapshot):
            reason = await self._asked_of_host(cursor)
        return reason

    async def _asked_of_host(self, cursor: Cursor) -> Reason | None:
        """Have a completion written, and more of them for who asks; why there is none."""
        state = await self._link.ready(lambda: not self._is_outdated(cursor.snapshot))
        if state != "ready":
            return Reason.SUPERSEDED if self._is_outdated(cursor.snapshot) else host_reason(state)
        settings = self._settings()
        if cursor.trigger is Trigger.INVOKED:
            return await self._candidates(cursor, settings)
        if settings.debounce_ms:
            await asyncio.sleep(settings.debounce_ms / 1000)
        return await self._written(cursor)

    async def _candidates(self, cursor: Cursor, settings: Settings) -> Reason | None:
        """Have several completions written, as long as that is quick; some say the same."""
        began = time.monotonic()
        reason = await self._begun(cursor, Sampled(settings.temperature, settings.seed))
        best = self._found(cursor)[:1]
        for number in range(1, 2 * settings.num_candidates - 1):
            count = len(self._found(cursor))
            limit_s = _VARIETY_S if count > 1 else _SECOND_S
            is_late = time.monotonic() - began > limit_s
            is_over = reason in HOST_TROUBLES or reason in WITHDRAWN
            if is_over or is_late or count >= settings.num_candidates:
                break
            await self._begun(cursor, Sampled(_VARIETY, (settings.seed + number) % 2**63))
        for one in best:
            self._known.prefer(one.completion_id)
        return reason

    async def _written(self, cursor: Cursor) -> Reason | None:
        """Wait for a generation that fits: one that runs, or else a new one."""
        while (running := self._generations.joinable(cursor.origin)) is not None:
            reason = await self._outcome(running, cursor)
            if self._found(cursor):
                return None
            if reason in HOST_TROUBLES:
                return reason
            # Who joined may have typed all of it, or something else by now.
            if running.origin == cursor.origin and reason is not Reason.SUPERSEDED:
                return reason
        return await self._begun(cursor, None)

    async def _begun(self, cursor: Cursor, sampling: Sampled | None) -> Reason | None:
        if self._is_outdated(cursor.snapshot):
            return Reason.SUPERSEDED
        return await self._outcome(self._generations.begin(cursor, sampling), cursor)

    async def _outcome(self, generation: Generation, cursor: Cursor) -> Reason | None:
        outcome = await generation.outcome(cursor.origin.snapshot, cursor.origin.position)
        self._generations.finished(generation)
        if isinstance(outcome, Failed):
            return failure_reason(outcome.code)
        # None: the user typed something else than what is written.
        return Reason.SUPERSEDED if outcome is None else generation.reason

    def _look_ahead(self, cursor: Cursor, shown: Remainder) -> None:
        if not self._is_outdated(cursor.snapshot):
            self._generations.look_ahead(cursor, shown)

    def _is_outdated(self, snapshot: Snapshot) -> bool:
        now = self._documents.snapshot(snapshot.uri)
        if isinstance(now, DocumentRefused):
            return True
        return (now.opening, now.version) != (snapshot.opening, snapshot.version)

    def _item(self, cursor: Cursor, rest: Remainder) -> types.InlineCompletionItem:
        settings, snapshot = self._settings(), cursor.snapshot
        position = cursor.origin.position
        if cursor.selected is not None:
            insertion = cursor.selected.followed_by(position.line, rest.processed)
        else:
            insertion = Insertion.at_cursor(position, rest.processed)
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


def _is_long(snapshot: Snapshot, row: int) -> bool:
    return len(snapshot.line(row)) > _LONGEST_LINE
