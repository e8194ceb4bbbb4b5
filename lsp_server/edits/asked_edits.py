"""Edits asked for in words: one at a time per document, refused where the text has changed."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

import msgspec
from lsprotocol import types
from msgspec import Meta

from engine.host.protocol import Position
from engine.request import MAX_INSTRUCTION_CHARS, EditTask
from lsp_server.documents.anchor import Anchor
from lsp_server.documents.document import Snapshot
from lsp_server.edits.host_edits import HostEdits
from lsp_server.edits.refusals import DOCUMENT_CHANGED, EditRefusedError
from lsp_server.edits.text_edit import text_edit
from lsp_server.reasons import Reason
from lsp_server.workspace import Workspace

_MOST_SHOWN = 99  # percent, as an answer may be longer than the lines that it replaces
Report = Callable[[int], None]  # takes percent


class AskedEdit(msgspec.Struct, frozen=True, rename="camel"):
    """The argument of `foregram.edit`."""

    uri: str
    range: types.Range
    instruction: Annotated[str, Meta(pattern=r"\S", max_length=MAX_INSTRUCTION_CHARS)]
    version: int | None = None  # that `range` belongs to; None: the current one
    preview: bool = False  # return the change, and do not apply it
    work_done_token: int | str | None = None


@dataclass(slots=True)
class _Running:
    task: asyncio.Task[types.TextEdit]
    stopped_by: str = ""  # the reason, as a code


class AskedEdits:
    """Makes edits. A change of a document ends its edit, and so does another edit."""

    def __init__(self, workspace: Workspace, host: HostEdits) -> None:
        self._workspace = workspace
        self._host = host
        self._running: dict[str, _Running] = {}  # by document

    def may_offer(self, document: Snapshot) -> bool:
        """Whether edits of a document can be offered, as far as is known at once."""
        permissions = self._workspace.permissions
        is_known = self._host.follows_instructions and permissions.knows([document])
        return is_known and permissions.may_send(document)

    async def make(self, asked: AskedEdit, report: Report) -> types.TextDocumentEdit:
        """Make an edit, in place of a running one. Raises EditRefusedError."""
        uri = asked.uri
        self.stop(uri, Reason.SUPERSEDED)
        document = self._workspace.documents.snapshot(uri)
        if isinstance(document, Reason):
            raise EditRefusedError(document)
        if asked.version not in (None, document.version):
            raise EditRefusedError(DOCUMENT_CHANGED)
        task = EditTask(asked.instruction, *_lines_of(asked.range, document))
        anchor = Anchor.of(document, Position(task.first, 0))
        making = asyncio.create_task(self._made(anchor, task, report))
        running = self._running[uri] = _Running(making)
        try:
            edit = await making
        except asyncio.CancelledError:
            if not running.stopped_by:
                raise
        finally:
            if self._running.get(uri) is running:
                del self._running[uri]
        if running.stopped_by or self._workspace.is_outdated(anchor):
            raise EditRefusedError(running.stopped_by or DOCUMENT_CHANGED)
        name = types.OptionalVersionedTextDocumentIdentifier(uri, document.version)
        return types.TextDocumentEdit(name, [edit])

    def stop(self, uri: str, why: str = Reason.CANCELLED) -> None:
        """End the edit of a document, if there is one."""
        if (running := self._running.pop(uri, None)) is not None:
            running.stopped_by = why
            running.task.cancel()

    def stop_all(self) -> None:
        """End all edits."""
        for uri in list(self._running):
            self.stop(uri)

    async def _made(self, anchor: Anchor, task: EditTask, report: Report) -> types.TextEdit:
        num_written, num_lines = 0, task.end - task.first

        def told(text: str) -> None:
            nonlocal num_written
            num_written += text.count("\n")
            report(min(_MOST_SHOWN, 100 * num_written // num_lines))

        _, change = await self._host.write(anchor, task, told)
        return text_edit(change, anchor.document, self._workspace.line_end(anchor.document))


def _lines_of(where: types.Range, document: Snapshot) -> tuple[int, int]:
    """Return the first line and the one after the last. Raises EditRefusedError outside the text."""
    start, end = sorted((where.start, where.end))
    last = end.line - 1 if end.character == 0 and end.line > start.line else end.line
    if not 0 <= start.line < len(document.lines):
        raise EditRefusedError(Reason.BAD_POSITION)
    return start.line, min(last + 1, len(document.lines))
