"""Edits asked for in words, while the document changes under them."""

import asyncio
import random
from contextlib import suppress
from types import SimpleNamespace
from typing import Any, cast

import pytest
from lsprotocol import types

from engine.request import Chunk, Cost, Done, EditOutcome, FinishReason
from lsp_server.documents.documents import Documents
from lsp_server.documents.line_buffer import LineBuffer
from lsp_server.edits.asked_edits import AskedEdit, AskedEdits
from lsp_server.edits.host_edits import HostEdits
from lsp_server.edits.refusals import DOCUMENT_CHANGED, EditRefusedError
from lsp_server.reasons import Reason
from lsp_server.settings import load_settings
from lsp_server.workspace import Workspace

URI = "file:///a.py"
SETTINGS = load_settings().settings
COST = Cost(0, 0, 0, 0, 0, 0.0, 0.0, {})
LINES = ("x = '🦉'", "y = 2", "", "z = 3")


class Link:
    """Answers each task with an edit of some lines, after some turns of the loop."""

    def __init__(self, chance):
        self._chance = chance
        self.search = SimpleNamespace(
            state="ready", process=(1, 1.0), is_adapter=False, ready=self._ready
        )

    async def _ready(self, _stands):
        await asyncio.sleep(0)
        return self.search.state

    async def complete(self, _anchor, *, edit, **_how):
        for _ in range(self._chance.randrange(4)):
            yield Chunk("a line\n" * self._chance.randrange(9))
            await asyncio.sleep(0)
        first, end = sorted(self._chance.choices(range(len(LINES) + 2), k=2))
        new = tuple(self._chance.choices(("", "new = '🦉🦉'", "b\rc"), k=self._chance.randrange(4)))
        task = edit()
        is_inside = task.first <= first and end <= task.end
        chosen = EditOutcome(first, end, new, refusal="" if is_inside else self._outside())
        yield Done("", FinishReason.END_TOKEN, COST, edit=chosen)

    def _outside(self):
        return self._chance.choice(("", "token_limit"))


class Race:
    """One document, the edits asked for in it, and what becomes of them."""

    def __init__(self, seed):
        self.chance = random.Random(seed)  # noqa: S311 - a draw, no secret
        self.documents = Documents()
        self.documents.open(types.TextDocumentItem(URI, "python", 1, "\r\n".join(LINES)))
        permissions: Any = SimpleNamespace(why_hidden=lambda _: None, look=self._look)
        workspace = Workspace(self.documents, SETTINGS, permissions)
        self.link = cast("Any", Link(self.chance))
        self.host = HostEdits(workspace, self.link)
        self.edits = AskedEdits(workspace, self.host)
        self.reasons, self.num_made = [], 0

    async def _look(self, _snapshots):
        await asyncio.sleep(0)

    async def run(self):
        acts = (self.ask, self.ask, self.type, self.type_unnoticed, self.cancel, self.wait)
        begun = [asyncio.ensure_future(self.ask())]
        for act in self.chance.choices(acts, k=5):
            begun.append(asyncio.ensure_future(act()))
            for _ in range(self.chance.randrange(6)):
                await asyncio.sleep(0)
        await asyncio.gather(*begun)
        assert not self.edits._running

    async def ask(self):
        first, end = sorted(self.chance.choices(range(len(LINES)), k=2))
        where = types.Range(types.Position(first, 0), types.Position(end, 1))
        shown: list[int] = []
        document = self.documents.snapshot(URI)
        try:
            made = await self.edits.make(AskedEdit(URI, where, "Do it."), shown.append)
        except EditRefusedError as error:
            self.reasons.append(error.code)
            return
        assert self.documents.snapshot(URI) is document
        assert made.text_document.version == document.version
        self._check(made.edits, document.lines, first, end + 1)
        assert all(0 <= percentage < 100 for percentage in shown)
        self.num_made += 1

    def _check(self, edits, old, first, end):
        buffer, [edit] = LineBuffer("\n".join(old)), edits
        buffer.apply(edit.range, edit.new_text)
        assert buffer.lines[:first] == old[:first]
        assert buffer.lines[len(buffer.lines) - len(old) + end :] == old[end:]
        assert buffer.lines != old

    async def type(self):
        self._change()
        self.edits.stop(URI, DOCUMENT_CHANGED)

    async def type_unnoticed(self):
        """Change the text by another message, of which no edit is told."""
        self._change()

    async def cancel(self):
        self.edits.stop(URI)

    async def wait(self):
        await asyncio.sleep(0)

    def _change(self):
        version = self.documents.snapshot(URI).version + 1
        where = types.Range(types.Position(0, 0), types.Position(0, 0))
        change = types.TextDocumentContentChangePartial(where, "#")
        self.documents.change(URI, version, [change])


async def test_no_edit_is_made_of_a_changed_document_or_outside_its_lines():
    races = [Race(seed) for seed in range(5_000)]
    for race in races:
        await race.run()
    reasons = {reason for race in races for reason in race.reasons}
    assert reasons >= {
        DOCUMENT_CHANGED,
        Reason.SUPERSEDED,
        Reason.CANCELLED,
        "outside",
        "token_limit",
    }
    assert sum(race.num_made for race in races) > 100


@pytest.mark.parametrize("state", ["failed", "unreachable"])
async def test_without_a_host_an_edit_is_refused(state):
    race = Race(0)
    race.link.search.state = state
    await race.ask()
    assert race.reasons == ["host_failed" if state == "failed" else "host_unreachable"]
    assert not race.host.follows_instructions


async def test_no_edit_is_offered_where_another_program_generates():
    race = Race(0)
    assert race.host.follows_instructions
    race.link.search.is_adapter = True
    assert not race.host.follows_instructions


async def test_an_edit_whose_request_is_cancelled_ends():
    race = Race(0)
    task = asyncio.ensure_future(race.ask())
    await asyncio.sleep(0)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    assert not race.edits._running
    assert (race.num_made, race.reasons) == (0, [])
