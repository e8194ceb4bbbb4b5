"""The command `foregram.edit`: progress in the editor, and the change applied in one step."""

import asyncio
import logging
import uuid
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import msgspec
from lsprotocol import types
from pygls.exceptions import JsonRpcException, JsonRpcInvalidParams, JsonRpcRequestCancelled

from lsp_server.edits.asked_edits import AskedEdit, AskedEdits
from lsp_server.edits.refusals import NOT_APPLIED, EditRefusedError
from lsp_server.reasons import WITHDRAWN
from lsp_server.transport.protocol import DocumentServer

_LOG = logging.getLogger(__name__)
EDIT_COMMAND = "foregram.edit"
_MOST_TITLE = 60  # characters of a text in a menu, a progress bar or an undo step


class EditCommand:
    """Answers the command for one client."""

    def __init__(
        self,
        server: DocumentServer,
        edits: AskedEdits,
        working: Callable[[], AbstractContextManager[None]],
    ) -> None:
        """Take `working`, which shows that the server is busy."""
        self._server = server
        self._edits = edits
        self._working = working
        self._documents: dict[int | str, str] = {}  # being edited, by the token of the progress
        self._tasks: set[asyncio.Task[None]] = set()  # asyncio holds only weak references

    async def run(self, argument: object) -> dict[str, Any] | None:
        """Return the edit of a preview, or begin one to be applied. Raises JsonRpcException."""
        try:
            asked = msgspec.convert(argument, AskedEdit)
        except msgspec.ValidationError as error:
            raise JsonRpcInvalidParams(f"{EDIT_COMMAND}: {error}") from error
        if not asked.preview:
            # Some editors stand still until the answer, or give up after ten seconds.
            task = asyncio.create_task(self._make_and_apply(asked))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
            return None
        try:
            made = await self._made(asked)
        except EditRefusedError as error:
            raise _response(error) from error
        return {"version": made.text_document.version, "edits": made.edits}

    def cancel(self, token: int | str) -> None:
        """End the edit whose progress has this token."""
        if (uri := self._documents.get(token)) is not None:
            self._edits.stop(uri)

    async def _make_and_apply(self, asked: AskedEdit) -> None:
        try:
            self._require_editor()
            await self._apply(await self._made(asked), asked.instruction)
        except (EditRefusedError, JsonRpcException) as error:  # the latter is the client's
            if not (isinstance(error, EditRefusedError) and error.code in WITHDRAWN):
                self._tell(str(error))
        except Exception:  # noqa: BLE001 - a client may answer anything, and a person waits
            _LOG.exception("an edit failed")
            self._tell("the edit failed; the logs say why")

    def _tell(self, sentence: str) -> None:
        kind, text = types.MessageType.Warning, f"foregram: {sentence}"
        self._server.window_show_message(types.ShowMessageParams(kind, text))

    async def _made(self, asked: AskedEdit) -> types.TextDocumentEdit:
        with self._working():
            return await self._made_with_progress(asked)

    async def _made_with_progress(self, asked: AskedEdit) -> types.TextDocumentEdit:
        token, progress = asked.work_done_token, self._server.work_done_progress
        window = self._server.client_capabilities.window
        if token is None and not (window and window.work_done_progress):
            return await self._edits.make(asked, lambda _: None)
        if token is None:
            token = uuid.uuid4().hex
            progress.create(token, lambda _: None)
        self._documents[token] = asked.uri
        title = f"foregram: {shortened(asked.instruction)}"
        progress.begin(token, types.WorkDoneProgressBegin(title, cancellable=True, percentage=0))
        try:
            return await self._edits.make(asked, self._reporter(token))
        finally:
            progress.end(token, types.WorkDoneProgressEnd())
            progress.tokens.pop(token, None)
            self._documents.pop(token, None)

    def _reporter(self, token: int | str) -> Callable[[int], None]:
        shown = 0

        def report(percentage: int) -> None:
            nonlocal shown
            if percentage > shown:
                shown = percentage
                update = types.WorkDoneProgressReport(cancellable=True, percentage=percentage)
                self._server.work_done_progress.report(token, update)

        return report

    def _require_editor(self) -> None:
        workspace = self._server.client_capabilities.workspace
        edits = workspace.workspace_edit if workspace and workspace.apply_edit else None
        if edits is None or not edits.document_changes:
            sentence = "this editor cannot apply an edit to one version of a document"
            raise EditRefusedError(NOT_APPLIED, sentence)

    async def _apply(self, made: types.TextDocumentEdit, instruction: str) -> None:
        change = types.WorkspaceEdit(document_changes=[made])
        params = types.ApplyWorkspaceEditParams(change, shortened(instruction))
        answer = await self._server.workspace_apply_edit_async(params)
        if not answer.applied:
            raise EditRefusedError(NOT_APPLIED, answer.failure_reason or "")


def _response(error: EditRefusedError) -> JsonRpcException:
    data = {"reason": error.code}
    if error.code in WITHDRAWN:
        return JsonRpcRequestCancelled(str(error), data=data)
    return JsonRpcException(str(error), types.LSPErrorCodes.RequestFailed, data)


def shortened(text: str) -> str:
    """Return a text on one line, as long as a menu or a progress bar has room for."""
    line = " ".join(text.split())
    return line if len(line) <= _MOST_TITLE else f"{line[:_MOST_TITLE]}..."
