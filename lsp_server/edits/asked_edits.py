"""Edits asked for in words: one at a time per document, refused where the text has changed."""

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Annotated

import msgspec
from lsprotocol import types
from msgspec import Meta

from engine.config import StopRules
from engine.edits.edit_prompt import Refusal
from engine.host.protocol import Failed, Position
from engine.request import Done, EditOutcome, EditTask
from lsp_server.documents.anchor import Anchor
from lsp_server.documents.document import Snapshot
from lsp_server.edits.refusals import DOCUMENT_CHANGED, OUTSIDE, EditRefusedError
from lsp_server.edits.text_edit import text_edit
from lsp_server.host.client import HostGoneError, HostRefusedError
from lsp_server.host.link import HostLink
from lsp_server.reasons import Reason, host_reason
from lsp_server.workspace import Workspace

NO_CHAT_TEMPLATE = "no_chat_template"  # the host's code where its model takes no instructions
_WHOLE = StopRules(max_tokens=2**20)  # more than any answer has: the host's own limits hold
_MOST_SHOWN = 99  # percent, as an answer may be longer than the lines that it replaces


class AskedEdit(msgspec.Struct, frozen=True, rename="camel"):
    """The argument of `foregram.edit`."""

    uri: str
    range: types.Range
    instruction: Annotated[str, Meta(min_length=1, max_length=4096)]
    version: int | None = None  # that `range` belongs to; None: the current one
    preview: bool = False  # return the change, and do not apply it
    work_done_token: int | str | None = None


@dataclass(frozen=True, slots=True)
class MadeEdit:
    """A change of a document at the version of `document`."""

    document: Snapshot
    edit: types.TextEdit


@dataclass(slots=True)
class _Running:
    task: asyncio.Task[MadeEdit]
    stopped_by: str = ""  # the reason, as a code


class AskedEdits:
    """Has the host write edits. A change of a document ends its edit, and so does another edit."""

    def __init__(self, workspace: Workspace, link: HostLink) -> None:
        self._workspace = workspace
        self._link = link
        self._running: dict[str, _Running] = {}  # by document
        self._unable = 0, 0.0  # `search.process` of the last host that took no instructions

    @property
    def is_possible(self) -> bool:
        """Whether the host takes instructions, as far as is known without a request."""
        search = self._link.search
        is_able = search.process != self._unable and not search.is_adapter
        return search.state == "ready" and is_able

    async def make(self, asked: AskedEdit, report: Callable[[int], None]) -> MadeEdit:
        """Make an edit, in place of a running one; `report` gets percent. Raises EditRefusedError."""
        uri = asked.uri
        self.stop(uri, Reason.SUPERSEDED)
        document = self._workspace.documents.snapshot(uri)
        if isinstance(document, Reason):
            raise EditRefusedError(document)
        if asked.version not in (None, document.version):
            raise EditRefusedError(DOCUMENT_CHANGED)
        first, end = _lines_of(asked.range, document)
        anchor = Anchor.of(document, Position(first, 0))
        making = self._made(anchor, EditTask(asked.instruction, first, end), report)
        running = self._running[uri] = _Running(asyncio.create_task(making))
        try:
            made = await running.task
        except asyncio.CancelledError:
            if not running.stopped_by:
                raise
        finally:
            if self._running.get(uri) is running:
                del self._running[uri]
        if running.stopped_by or self._workspace.is_outdated(anchor):
            raise EditRefusedError(running.stopped_by or DOCUMENT_CHANGED)
        return made

    def stop(self, uri: str, why: str = Reason.CANCELLED) -> None:
        """End the edit of a document, if there is one."""
        if (running := self._running.pop(uri, None)) is not None:
            running.stopped_by = why
            running.task.cancel()

    def stop_all(self) -> None:
        """End all edits."""
        for uri in list(self._running):
            self.stop(uri)

    async def _made(
        self, anchor: Anchor, task: EditTask, report: Callable[[int], None]
    ) -> MadeEdit:
        await self._check(anchor)
        outcome = await self._answer(anchor, task, report)
        line_end = self._workspace.line_end(anchor.document)
        edit = text_edit(outcome, anchor.document, line_end)
        if edit is None:
            raise EditRefusedError(Refusal.NO_CHANGE)
        return MadeEdit(anchor.document, edit)

    async def _check(self, anchor: Anchor) -> None:
        """Wait for a host. Raises EditRefusedError if the document is hidden or there is no host."""
        await self._workspace.look()
        if (reason := self._workspace.permissions.refusal(anchor.document)) is not None:
            raise EditRefusedError(reason)
        if (state := await self._link.search.ready()) != "ready":
            raise EditRefusedError(host_reason(state))

    async def _answer(
        self, anchor: Anchor, task: EditTask, report: Callable[[int], None]
    ) -> EditOutcome:
        try:
            done = await self._done(anchor, task, report)
        except HostRefusedError as error:
            self._note(error.problem.code)
            raise EditRefusedError(error.problem.code, error.problem.message) from error
        except HostGoneError as error:
            raise EditRefusedError(Reason.HOST_UNREACHABLE) from error
        outcome = done.edit
        if outcome is None:
            raise EditRefusedError(Reason.HOST_FAILED)
        if outcome.refusal:
            raise EditRefusedError(outcome.refusal)
        if not task.first <= outcome.first <= outcome.end <= task.end:
            raise EditRefusedError(OUTSIDE)
        return outcome

    async def _done(self, anchor: Anchor, task: EditTask, report: Callable[[int], None]) -> Done:
        num_written, num_lines = 0, task.end - task.first
        async with aclosing(self._link.complete(anchor, _WHOLE, edit=task)) as events:
            async for event in events:
                if isinstance(event, Done):
                    return event
                if isinstance(event, Failed):
                    self._note(event.code)
                    raise EditRefusedError(event.code, event.message)
                num_written += event.text.count("\n")
                report(min(_MOST_SHOWN, 100 * num_written // num_lines))
        raise EditRefusedError(Reason.HOST_FAILED)

    def _note(self, code: str) -> None:
        if code == NO_CHAT_TEMPLATE:
            self._unable = self._link.search.process


def _lines_of(where: types.Range, document: Snapshot) -> tuple[int, int]:
    """Return the first line and the one after the last. Raises EditRefusedError outside the text."""
    start, end = sorted((where.start, where.end))
    last = end.line - 1 if end.character == 0 and end.line > start.line else end.line
    if not 0 <= start.line < len(document.lines):
        raise EditRefusedError(Reason.BAD_POSITION)
    return start.line, min(last + 1, len(document.lines))
