"""Asks the host for the next edit, and decides whether to propose it."""

import asyncio
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

from engine.edits.block import MOST_LINES
from engine.edits.edit_prompt import Refusal
from engine.request import EditTask
from lsp_server.documents.anchor import Anchor
from lsp_server.documents.document import Snapshot
from lsp_server.edits.edit_script import Hunk
from lsp_server.edits.elsewhere import elsewhere
from lsp_server.edits.history import Changes, EditHistory
from lsp_server.edits.host_edits import HostEdits, WrittenEdit
from lsp_server.edits.messages import InlineEditParams
from lsp_server.edits.proposals import Ending, Proposal, Proposals
from lsp_server.edits.refusals import DOCUMENT_CHANGED, OUTSIDE, EditRefusedError
from lsp_server.edits.text_edit import text_edit
from lsp_server.reasons import Reason, host_reason
from lsp_server.why import AnswerLog
from lsp_server.workspace import Workspace

# Least probability of all changed tokens together. tsugi.nvim, which measured such a gate on
# 829 completions, found texts above 0.7 to be right in 77 to 87 % of the cases.
SURE = 0.7
_REASONS: dict[str, Reason] = {  # by refusal; all others mean that an answer broke a rule
    DOCUMENT_CHANGED: Reason.SUPERSEDED,
    OUTSIDE: Reason.NO_NEXT_EDIT,
    Refusal.BLANK_LINES: Reason.NO_NEXT_EDIT,
    Refusal.EMPTY_ANSWER: Reason.NO_NEXT_EDIT,
    Refusal.EMPTY_BLOCK: Reason.BLANK_BLOCK,
    Refusal.LARGE_FILE: Reason.TOO_LARGE,
    Refusal.LONG_LINES: Reason.LINE_TOO_LONG,
    Refusal.NO_CHANGE: Reason.NO_NEXT_EDIT,
    Refusal.REVERT: Reason.EDIT_RETURNS,
}
# The model has nothing new to say at the cursor, and may have elsewhere.
_LOOKS_ON = frozenset(
    {Reason.BLANK_BLOCK, Reason.EDIT_KNOWN, Reason.EDIT_RETURNS, Reason.NO_NEXT_EDIT}
)


class _Ahead(NamedTuple):
    """An edit asked for in a text that is expected."""

    anchor: Anchor
    task: asyncio.Task[WrittenEdit]


class NextEdits:
    """Proposes at most one edit at a time, from the newest request. Clients say what became of it."""

    def __init__(
        self, workspace: Workspace, host: HostEdits, answers: AnswerLog, proposals: Proposals
    ) -> None:
        self.history = EditHistory(workspace)
        self.proposals = proposals
        self._workspace = workspace
        self._host = host
        self._answers = answers
        self._running: asyncio.Task[Any] | None = None
        self._running_in = ""  # URI of its document
        self._ahead: _Ahead | None = None

    async def answer(self, params: InlineEditParams) -> dict[str, Any]:
        """Return the edit for a document's version, if any, in place of a running answer."""
        self.stop()
        # The request's own task: no message comes between the last check of a proposal and its end.
        running = self._running = asyncio.current_task()
        self._running_in = params.text_document.uri
        try:
            proposal = await self._found(params)
        except EditRefusedError as refused:
            self._note(params, *_reason(refused))
        except asyncio.CancelledError:
            is_newest = self._running is running
            self._note(params, Reason.CANCELLED if is_newest else Reason.SUPERSEDED)
            if is_newest:  # it was the client
                raise
        else:
            self.proposals.add(proposal)
            is_hint = self._workspace.settings.next_edits == "hint"
            return {"edits": [proposal.message], "isHint": is_hint}
        finally:
            if self._running is running:
                self._running = None
        return {"edits": []}

    def stop(self) -> None:
        """End the running answer, if any."""
        running, self._running = self._running, None
        if running is not None:
            running.cancel()

    def stop_ahead(self) -> None:
        """Drop what was asked ahead, if anything."""
        ahead, self._ahead = self._ahead, None
        if ahead is not None:
            ahead.task.cancel()

    def shown(self, proposal_id: str) -> None:
        """Note that a proposal is on the screen, and ask for the edit that follows if it is made."""
        self.stop_ahead()
        proposal = self.proposals.shown(proposal_id)
        if proposal is None or self._workspace.is_outdated(proposal.expected):
            return
        if self._workspace.settings.speculate:
            anchor = proposal.expected
            past = partial(self.history.past_with, anchor.document, proposal.change)
            writing = self._host.write(anchor, EditTask(), history=past)
            self._ahead = _Ahead(anchor, asyncio.create_task(writing))
            self._ahead.task.add_done_callback(lambda task: task.cancelled() or task.exception())

    def changed(self, uri: str, changes: Changes) -> None:
        """Note a change. It ends a running answer: the model is needed where the user types."""
        self.stop()
        document = self._workspace.documents.snapshot(uri)
        if self._ahead and not self._ahead.anchor.fits(document):
            self.stop_ahead()
        self.history.changed(uri, changes)
        if made := self.proposals.made(document):  # some clients do not tell
            self.ended(made.id, "accepted")

    def closed(self, *uris: str) -> None:
        """Forget closed documents, and end the running answer if it is about one of them."""
        if self._running_in in uris:
            self.stop()
        if self._ahead and self._ahead.anchor.document.uri in uris:
            self.stop_ahead()
        self.history.forget(*uris)
        self.proposals.forget(*uris)

    async def follow(self, uri: str) -> None:
        """Note which lines of a document have changed, when it is opened and when typing pauses."""
        await self._workspace.look()
        if self._is_off:
            self.history.clear()
        else:
            self.history.follow(uri)

    def ended(self, proposal_id: str, ending: Ending) -> None:
        """Note what the user did with a proposal."""
        if ending == "accepted":
            self.history.accepted()
        else:
            self.stop_ahead()
        self.proposals.ended(proposal_id, ending)

    @property
    def _is_off(self) -> bool:
        return self._workspace.settings.next_edits == "off"

    def _note(self, params: InlineEditParams, reason: Reason, detail: str = "") -> None:
        self._answers.note(params.text_document.uri, reason, params.position.line + 1, detail)

    async def _found(self, params: InlineEditParams) -> Proposal:
        """Look for an edit at the cursor, then elsewhere. Raises EditRefusedError."""
        await self.follow(params.text_document.uri)
        anchor = self._anchor(params)
        try:
            return await self._asked(anchor, params)
        except EditRefusedError as refused:
            if _reason(refused)[0] in _LOOKS_ON:
                row = anchor.position.line
                diagnostics = params.diagnostics_from(row)
                lines, newest = anchor.document.lines, self.history.newest
                for there in elsewhere(lines, row, newest, diagnostics):
                    try:
                        return await self._asked(Anchor.of(anchor.document, there), params)
                    except EditRefusedError as later:
                        if not _is_of_model(later):
                            raise
            raise

    def _anchor(self, params: InlineEditParams) -> Anchor:
        """Return the place of a request. Raises EditRefusedError where no edit is looked for."""
        if self._is_off:
            raise EditRefusedError(Reason.NEXT_EDITS_OFF)
        document = self._workspace.documents.snapshot(params.text_document.uri)
        if isinstance(document, Reason):
            raise EditRefusedError(document)
        if (reason := self._silence(document, params)) is not None:
            raise EditRefusedError(reason)
        return Anchor.of(document, document.position(params.position))

    def _silence(self, document: Snapshot, params: InlineEditParams) -> Reason | None:
        permissions = self._workspace.permissions
        if params.text_document.version not in (None, document.version):
            return Reason.OTHER_VERSION
        if reason := permissions.refusal(document) or permissions.silence(document):
            return reason
        if not 0 <= params.position.line < len(document.lines):
            return Reason.BAD_POSITION
        if len(document.lines) > MOST_LINES:
            return Reason.TOO_LARGE
        if self.history.is_bulk(document.uri):
            return Reason.BULK_EDIT
        return None if self.history.past() else Reason.NOTHING_EDITED

    async def _asked(self, anchor: Anchor, params: InlineEditParams) -> Proposal:
        diagnostics = params.diagnostics_from(anchor.position.line)
        task = EditTask(diagnostics=diagnostics)
        return self._judged(anchor.document, await self._written(anchor, task))

    async def _written(self, anchor: Anchor, task: EditTask) -> WrittenEdit:
        """Return the edit that was asked ahead for this very text, if any, or ask now."""
        ahead = self._ahead
        if ahead is not None and ahead.anchor.fits(anchor.document):
            self._ahead = None
            with suppress(EditRefusedError):
                written = await ahead.task
                self._host.check(anchor)
                return written
        self.stop_ahead()
        return await self._host.write(anchor, task, history=self.history.past)

    def _judged(self, document: Snapshot, written: WrittenEdit) -> Proposal:
        change = written.change
        if change.probability < SURE:
            raise EditRefusedError(Reason.EDIT_UNSURE)
        hunk = Hunk(change.first, document.lines[change.first : change.end], change.lines)
        if self.history.is_undone_by(document.uri, hunk):
            raise EditRefusedError(Reason.EDIT_RETURNS)
        edit = text_edit(change, document, self._workspace.line_end(document))
        proposal = Proposal.of(written.id, document, change, edit)
        if self.proposals.is_settled(proposal):
            raise EditRefusedError(Reason.EDIT_KNOWN)
        return proposal


def _is_of_model(refused: EditRefusedError) -> bool:
    """Whether the model was asked and proposes nothing; otherwise a next look is in vain."""
    code = refused.code
    return code in _LOOKS_ON | {OUTSIDE, Reason.EDIT_UNSURE} or code in frozenset(Refusal)


def _reason(refused: EditRefusedError) -> tuple[Reason, str]:
    """Return why no edit is proposed, and what completes the reason's sentence."""
    code = refused.code
    if code in _REASONS:
        return _REASONS[code], ""
    if code in frozenset(Refusal):
        return Reason.EDIT_REFUSED, code.replace("_", " ")
    if code == Reason.NO_EDIT_MODEL:
        return Reason.NO_EDIT_MODEL, str(refused)
    return code if isinstance(code, Reason) else host_reason(code), ""
