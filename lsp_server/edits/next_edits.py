"""Asks the host for the next edit, and decides whether to propose it."""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import aclosing
from typing import Any, NamedTuple

from engine.config import StopRules
from engine.edits.edit_prompt import Refusal
from engine.errors import NoEditModelError
from engine.host.protocol import MAX_TOKENS, CompleteEvent, Failed, Feedback, FeedbackKind
from engine.request import Diagnostic, Done, EditTask
from lsp_server.documents.anchor import Anchor
from lsp_server.documents.document import Snapshot
from lsp_server.edits.edit_script import Hunk
from lsp_server.edits.elsewhere import elsewhere
from lsp_server.edits.history import Changes, EditHistory
from lsp_server.edits.messages import InlineEditParams
from lsp_server.edits.proposals import Proposal, Proposals
from lsp_server.edits.text_edit import text_edit, trimmed
from lsp_server.host.client import HostGoneError, HostRefusedError
from lsp_server.host.link import HostLink
from lsp_server.reasons import Reason, host_reason
from lsp_server.why import AnswerLog
from lsp_server.workspace import Workspace

_LOG = logging.getLogger(__name__)
# Least probability of all changed tokens together. tsugi.nvim, which measured such a gate on
# 829 completions, found texts above 0.7 to be right in 77 to 87 % of the cases.
SURE = 0.7
_WHOLE = StopRules.verbatim(MAX_TOKENS)  # the answer repeats a block of lines
_REASONS: dict[str, Reason] = {  # by refusal; all others mean that an answer broke a rule
    Refusal.BLANK_LINES: Reason.NO_NEXT_EDIT,
    Refusal.EMPTY_ANSWER: Reason.NO_NEXT_EDIT,
    Refusal.NO_CHANGE: Reason.NO_NEXT_EDIT,
    Refusal.REVERT: Reason.EDIT_RETURNS,
}
# The model has nothing new to say at the cursor, and may have elsewhere.
_LOOKS_ON = frozenset({Reason.EDIT_RETURNS, Reason.NO_NEXT_EDIT})


class Nothing(NamedTuple):
    """Why no edit is proposed; `detail` completes the reason's sentence."""

    reason: Reason
    detail: str = ""


class NextEdits:
    """Proposes at most one edit at a time, from the newest request. Clients say what became of it."""

    def __init__(self, workspace: Workspace, link: HostLink, answers: AnswerLog) -> None:
        self.history = EditHistory(workspace)
        self.proposals = Proposals(self._tell)
        self._workspace = workspace
        self._link = link
        self._answers = answers
        self._running: asyncio.Task[Proposal | Nothing] | None = None
        self._unable = 0, 0.0  # `search.process` of the last host whose model proposes no edits
        self._unable_because = ""

    async def answer(self, params: InlineEditParams) -> dict[str, Any]:
        """Return the edit for a document's version, if any, in place of a running answer."""
        self.stop()
        running = self._running = asyncio.ensure_future(self._found(params))
        found: Proposal | Nothing = Nothing(Reason.CANCELLED)
        try:
            found = await running
        except asyncio.CancelledError:
            if self._running is running:  # the client cancelled it, and not a newer request
                raise
            found = Nothing(Reason.SUPERSEDED)
        finally:
            if isinstance(found, Nothing):
                uri, line = params.text_document.uri, params.position.line + 1
                self._answers.note(uri, found.reason, line, found.detail)
        if isinstance(found, Nothing):
            return {"edits": []}
        self.proposals.add(found)
        return {"edits": [found.message]}

    def stop(self) -> None:
        """End the running answer, if any."""
        running, self._running = self._running, None
        if running is not None:
            running.cancel()

    def changed(self, uri: str, changes: Changes) -> None:
        """Note a change. It ends a running answer: the model is needed where the user types."""
        self.stop()
        self.history.changed(uri, changes)

    async def follow(self, uri: str) -> None:
        """Note which lines of a document have changed, when it is opened and when typing pauses."""
        await self._workspace.look()
        if self._is_off:
            self.history.clear()
        else:
            self.history.follow(uri)

    def accepted(self, proposal_id: str) -> None:
        """Note that a proposal was applied."""
        self.history.accepted()
        self.proposals.accepted(proposal_id)

    @property
    def _is_off(self) -> bool:
        return self._workspace.settings.next_edits == "off"

    async def _found(self, params: InlineEditParams) -> Proposal | Nothing:
        await self.follow(params.text_document.uri)
        anchor = self._anchor(params)
        if isinstance(anchor, Reason):
            return Nothing(anchor)
        state = await self._link.search.ready(lambda: not self._workspace.is_outdated(anchor))
        if self._workspace.is_outdated(anchor):
            return Nothing(Reason.SUPERSEDED)
        if state != "ready":
            return Nothing(host_reason(state))
        if self._link.search.process == self._unable:
            return Nothing(Reason.NO_EDIT_MODEL, self._unable_because)
        diagnostics = params.diagnostics_from(anchor.position.line)
        first = await self._asked(anchor, diagnostics)
        if isinstance(first, Proposal) or first.reason not in _LOOKS_ON:
            return first
        return await self._second(anchor, params) or first

    async def _second(self, anchor: Anchor, params: InlineEditParams) -> Proposal | None:
        """Look at another place of the document."""
        lines, row = anchor.document.lines, anchor.position.line
        there = elsewhere(lines, row, self.history.newest, params.diagnostics_from(row))
        if there is None:
            return None
        found = await self._asked(
            Anchor.of(anchor.document, there), params.diagnostics_from(there.line)
        )
        return found if isinstance(found, Proposal) else None

    def _anchor(self, params: InlineEditParams) -> Anchor | Reason:
        """Return the place of a request, or why no edit is looked for there."""
        if self._is_off:
            return Reason.NEXT_EDITS_OFF
        uri, version = params.text_document.uri, params.text_document.version
        document, permissions = self._workspace.documents.snapshot(uri), self._workspace.permissions
        if isinstance(document, Reason):
            return document
        if version not in (None, document.version):
            return Reason.OTHER_VERSION
        if reason := permissions.refusal(document) or permissions.silence(document):
            return reason
        if not 0 <= params.position.line < len(document.lines):
            return Reason.BAD_POSITION
        if self.history.is_bulk(uri):
            return Reason.BULK_EDIT
        if not self.history.past():
            return Reason.NOTHING_EDITED
        return Anchor.of(document, document.position(params.position))

    async def _asked(self, anchor: Anchor, diagnostics: Sequence[Diagnostic]) -> Proposal | Nothing:
        """Ask for an edit near `anchor`. Of a notebook, only the cell is shown."""
        task = EditTask(history=self.history.past(), diagnostics=tuple(diagnostics))
        try:
            end = await self._end(anchor, task)
        except HostRefusedError as error:
            return self._failed(error.problem.code, error.problem.message)
        except HostGoneError:
            return Nothing(Reason.HOST_UNREACHABLE)
        if self._workspace.is_outdated(anchor):
            return Nothing(Reason.SUPERSEDED)
        if reason := self._workspace.permissions.refusal(anchor.document):
            return Nothing(reason)
        if isinstance(end, Failed):
            return self._failed(end.code, end.message)
        return self._judged(anchor.document, end)

    async def _end(self, anchor: Anchor, task: EditTask) -> CompleteEvent:
        async with aclosing(self._link.complete(anchor, _WHOLE, edit=task)) as events:
            return [event async for event in events][-1]

    def _failed(self, code: str, message: str) -> Nothing:
        if code != NoEditModelError.code:
            return Nothing(host_reason(code))
        self._unable, self._unable_because = self._link.search.process, message
        _LOG.warning("no next edits until another host runs: %s", message)
        return Nothing(Reason.NO_EDIT_MODEL, message)

    def _judged(self, document: Snapshot, done: CompleteEvent) -> Proposal | Nothing:
        if not isinstance(done, Done) or (outcome := done.edit) is None:
            return Nothing(Reason.HOST_FAILED)
        if code := outcome.refusal:
            reason = _REASONS.get(code, Reason.EDIT_REFUSED)
            is_known = reason is not Reason.EDIT_REFUSED
            return Nothing(reason, "" if is_known else code.replace("_", " "))
        change = trimmed(outcome, document.lines)
        edit = text_edit(outcome, document, self._workspace.line_end(document))
        if change is None or edit is None:
            return Nothing(Reason.NO_NEXT_EDIT)
        if outcome.probability < SURE:
            return Nothing(Reason.EDIT_UNSURE)
        hunk = Hunk(change.first, document.lines[change.first : change.end], change.lines)
        if self.history.is_undone_by(document.uri, hunk):
            return Nothing(Reason.EDIT_RETURNS)
        proposal = Proposal.of(done.id, document, change, edit)
        is_known = self.proposals.is_settled(proposal)
        return Nothing(Reason.EDIT_KNOWN) if is_known else proposal

    def _tell(self, proposal_id: str, kind: FeedbackKind, length: int | None) -> None:
        self._link.tell(Feedback(self._link.client_id, proposal_id, kind, length))
