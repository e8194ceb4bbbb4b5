"""Whatever happens between a request and its answer, an edit is right, or it is not applied."""

import asyncio
import gc
import logging
from collections import Counter

import pytest
from lsprotocol import types

from lsp_server import session
from lsp_server.documents.line_buffer import LineBuffer
from lsp_server.edits.refusals import EditRefusedError
from lsp_server.host.sync import host_version
from lsp_server.reasons import WITHDRAWN
from tests.support.edit_sitting import EditSitting
from tests.support.editor import hostless

STEPS = 80  # of a sitting, in which the host is asked for some eight edits: each is a race
REASONS = {  # those that 500 races give by any seeds
    *("cancelled", "document_changed", "edit_known", "edit_returns", "edit_unsure", "host_failed"),
    *("no_change", "no_next_edit", "nothing_edited", "other_version", "outside", "superseded"),
}


class Judge:
    """Judges each answer of a server as it is made, before anything else can happen."""

    def __init__(self, sitting):
        self.sitting = sitting
        self.reasons = Counter[str]()
        self.num_empty = self.num_said = self.num_to_apply = 0
        edits = sitting.server.session
        self._answer, edits.next_edits.answer = edits.next_edits.answer, self.next_edit
        self._make, edits.asked_edits.make = edits.asked_edits.make, self.asked_edit

    async def next_edit(self, params):
        page, version = self._page(params.text_document.uri), params.text_document.version
        found, self.newest = {"edits": ()}, params
        try:
            found = await self._answer(params)
        finally:
            self.num_empty += not found["edits"]
        for edit in found["edits"]:
            [name] = edit["command"]["arguments"]
            assert params is self.newest
            assert version in (None, page.version)
            assert edit["textDocument"] == {"uri": page.uri, "version": page.version}
            where = types.Range(*(types.Position(**edit["range"][end]) for end in ("start", "end")))
            change = self._judge(page, self.sitting.host.asked[name], where, edit["text"])
            assert change not in self.sitting.settled
            assert change[-1] != page.first_lines
        return found

    async def asked_edit(self, asked, report):
        page = self._page(asked.uri)
        state = page.state
        try:
            made = await self._make(asked, report)
        except EditRefusedError as error:
            self.reasons[error.code] += 1
            self.num_said += not (asked.preview or error.code in WITHDRAWN)
            raise
        assert page.state == state
        assert asked.version in (None, page.version)
        name, [edit] = made.text_document, made.edits
        assert (name.uri, name.version) == (page.uri, page.version)
        of_page = (one for one in self.sitting.host.asked.values() if one.uri == page.uri)
        question = [one for one in of_page if one.task.instruction == asked.instruction][-1]
        assert asked.range.start.line <= question.task.first
        assert question.task.end <= asked.range.end.line + 1
        self._judge(page, question, edit.range, edit.new_text)
        self.num_to_apply += not asked.preview
        return made

    def _judge(self, page, question, where, text):
        """Check that an edit is what the host wrote of the present text, and nothing besides."""
        snapshot = self.sitting.server.documents.snapshot(page.uri)
        assert page.is_open
        assert question.lines == snapshot.lines == page.lines
        version = host_version(snapshot)
        if question.is_ahead:  # this text was expected then
            assert question.version >> 32 == snapshot.opening
        else:
            assert question.version == version
        outcome, (first, end) = question.outcome, question.block
        assert not outcome.refusal
        assert first <= outcome.first <= outcome.end <= end
        copy = LineBuffer(page.buffer.text)
        copy.apply(where, text)
        assert copy.lines == question.lines_after != page.lines
        assert set(copy._ends) <= {self.sitting.line_end, "\n" if len(page.lines) == 1 else "", ""}
        return snapshot.opening, page.lines, copy.lines

    def judge_end(self):
        """Check that nothing was silent, and that no edit came twice."""
        editor, noted = self.sitting.editor, self.sitting.server.session.answers.kept
        self.reasons.update(one.reason.value for one in noted)
        assert len(noted) == self.num_empty
        assert len(editor.said) == self.num_said + self.sitting.num_refused
        assert editor.num_to_apply == self.num_to_apply
        assert len(set(self.sitting.applied)) == len(self.sitting.applied)
        assert not editor.logged

    def _page(self, uri):
        return self.sitting.editor.pages[uri]


async def judged(seed):
    """Return a sitting and its judge."""
    sitting = EditSitting(seed)
    judge = Judge(sitting)
    try:
        await sitting.run(STEPS)
        judge.judge_end()
    except AssertionError as error:
        error.add_note(f"in sitting {seed}: {' '.join(sitting.log)}")
        raise
    await sitting.leave()
    return sitting, judge


async def at_once(work, *arguments):
    """Work on the event loop instead of in a thread, which would end at any time."""
    await asyncio.sleep(0)
    return work(*arguments)


@pytest.mark.parametrize(
    "num_races",
    [500, pytest.param(5_000, marks=[pytest.mark.slow, pytest.mark.timeout(300)])],
)
async def test_an_edit_is_applied_once_to_the_text_that_it_is_for_and_in_its_block(
    num_races, tmp_path, monkeypatch, caplog
):
    for name, value in hostless(tmp_path).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(asyncio, "to_thread", at_once)
    errors, reasons, num_asked, num_applied, seed = [], Counter[str](), 0, 0, 0
    asyncio.get_running_loop().set_exception_handler(lambda _, context: errors.append(context))
    while num_asked < num_races:
        monkeypatch.setattr(session, "_PAUSE_S", seed % 2)  # each second person pauses at each key
        sitting, judge = await judged(seed)
        assert not errors, (seed, sitting.log)
        num_asked += len(sitting.host.asked)
        num_applied += len(sitting.applied)
        reasons.update(judge.reasons)
        seed += 1
    del sitting, judge
    gc.collect()  # tells of exceptions that nobody took
    assert not errors
    assert not [one for one in caplog.records if one.levelno >= logging.ERROR]
    assert reasons.keys() >= REASONS
    assert num_applied > num_races / 20
