"""Work of the host before anyone waits for it: prompts are read, and texts after an accept written."""

import asyncio
from contextlib import suppress
from typing import Protocol

from lsprotocol import types

from engine.config import StopRules
from engine.host.protocol import CompleteEvent, Position
from engine.request import Done, FinishReason
from lsp_server.completion.in_flight import InFlightCompletion
from lsp_server.completion.suggestions import Suggestion, SuggestionCache
from lsp_server.documents.anchor import Anchor
from lsp_server.documents.cells_around import cells_around
from lsp_server.documents.document import Snapshot
from lsp_server.host.client import HostGoneError, HostRefusedError
from lsp_server.host.link import HostLink
from lsp_server.reasons import HOST_TROUBLES, WITHDRAWN, Reason
from lsp_server.workspace import Workspace

_PREFILL = StopRules(max_tokens=0)


class Running(Protocol):
    """The completions for which requests wait."""

    def is_busy(self, uri: str) -> bool:
        """Whether the host writes one for a document."""
        ...

    def matching(self, anchor: Anchor) -> InFlightCompletion | None:
        """Return one that still fits, also one ahead."""
        ...

    def started(self, anchor: Anchor, *, is_prefetch: bool, is_ahead: bool) -> InFlightCompletion:
        """Start one; `is_ahead`: of text that is not in the document."""
        ...


class Ahead:
    """One completion and the reading of one prompt, which make way for what a user waits for."""

    def __init__(
        self, workspace: Workspace, link: HostLink, cache: SuggestionCache, running: Running
    ) -> None:
        self.completion: InFlightCompletion | None = None
        self._workspace = workspace
        self._link = link
        self._cache = cache
        self._running = running
        self._reading: asyncio.Task[None] | None = None
        self._positions: dict[str, Position] = {}  # of the last completion, by document
        self._resting = ""  # a document whose next layout is to be read

    def note(self, anchor: Anchor) -> None:
        """Note where a document was completed last."""
        self._positions[anchor.document.uri] = anchor.position

    def prefill(
        self, uri: str, position: Position | None = None, *, is_written: bool = False
    ) -> None:
        """Have the host read the prompt at a position, by default that of the last completion.

        With `is_written` it completes there, too, for a first key that begins its text.
        """
        position = position or self._positions.get(uri)
        snapshot = self._workspace.documents.snapshot(uri)
        if not isinstance(snapshot, Snapshot) or position is None or self._running.is_busy(uri):
            return
        is_there = position.line < len(snapshot.lines) and not snapshot.is_long(position.line)
        if not is_there or self._workspace.left_alone(uri) is not None:
            return
        anchor = Anchor.of(snapshot, position, cells_around(self._workspace.documents, snapshot))
        if self._running.matching(anchor) is not None:  # it has read the prompt
            return
        is_written = is_written and not self._link.search.is_shared
        if is_written and not self._cache.suggestions(anchor):
            self._positions[uri], self._resting = position, uri
            self._write(anchor, is_ahead=False)
        else:
            self._stop_reading()
            self._reading = asyncio.create_task(self._read(anchor))

    def paused(self, uri: str) -> None:
        """Have a slow host read the prompt as it is laid out now, once no completion runs."""
        if uri in self._positions:
            self._resting = uri
            self.go_on()

    def rested(self, uri: str, position: types.Position, *, is_written: bool) -> None:
        """Prefill the prompt at the cursor; `is_written`: also complete it.

        Where the last completion was, only a slow host reads anything: the next layout.
        """
        snapshot = self._workspace.documents.snapshot(uri)
        if isinstance(snapshot, Snapshot) and position.line < len(snapshot.lines):
            there = snapshot.position(position)
            if there == self._positions.get(uri):
                self.paused(uri)
            else:
                self.prefill(uri, there, is_written=is_written)

    def go_on(self) -> None:
        """Read what waits for it, if the host is slow and does not write."""
        is_writing = self.completion is not None and self.completion.end is None
        if self._resting and not is_writing and not self._link.reads_quickly:
            self.prefill(self._resting)

    def follow(self, anchor: Anchor, shown: Suggestion) -> None:
        """Complete the text as it will be once `shown` is accepted.

        While `shown` may become longer, the host has no time for that.
        """
        workspace = self._workspace
        is_wanted = workspace.settings.speculate and workspace.silence(anchor.document) is None
        if not is_wanted or workspace.is_outdated(anchor) or self._running.matching(anchor):
            return
        anchor = anchor.accepting(shown.text, shown.replaced_chars_after_cursor)
        if self._cache.suggestions(anchor):
            return
        former = self.completion
        # Typing along the shown text leads to the same text in another version.
        failures = HOST_TROUBLES | WITHDRAWN | {Reason.QUOTA}
        has_failed = former is not None and former.end in failures
        if former is None or has_failed or former.place.typed_until(anchor) != "":
            self._write(anchor, is_ahead=True)

    def end_rest(self) -> None:
        """Read no layout for later, until another pause."""
        self._resting = ""

    def forget(self, uri: str) -> None:
        """Forget a closed document."""
        self._positions.pop(uri, None)
        if self._resting == uri:
            self.end_rest()

    def stop(self) -> None:
        """Cancel what runs."""
        self._stop_reading()
        if self.completion is not None:
            self.completion.cancel()
            self.completion = None

    def _write(self, anchor: Anchor, *, is_ahead: bool) -> None:
        self.stop()
        self.completion = self._running.started(anchor, is_prefetch=True, is_ahead=is_ahead)

    async def _read(self, anchor: Anchor) -> None:
        """Have the prompt read; where that takes long, then also the larger one for later."""
        with suppress(HostGoneError, HostRefusedError):
            for _ in range(2):
                event: CompleteEvent | None = None
                async for one in self._link.complete(anchor, _PREFILL, is_prefetch=True):
                    event = one
                if not (isinstance(event, Done) and event.finish_reason is FinishReason.PREFILLED):
                    return  # it made way, and is begun again behind a completion
                if self._link.reads_quickly or self._workspace.is_outdated(anchor):
                    break
        if self._resting == anchor.document.uri:
            self.end_rest()

    def _stop_reading(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
            self._reading = None
