"""Whatever happens between a request and its answer, an edit is right, or it is not applied."""

import asyncio
import random
from contextlib import suppress

from lsprotocol import types
from pygls.exceptions import JsonRpcException

from engine.host.runtime import RuntimeFolder
from engine.request import EditOutcome
from lsp_server.documents.line_buffer import LineBuffer
from tests.support.edit_engine import EditEngine, next_edit
from tests.support.editor import editor
from tests.support.running_host import running_host

RACES = 500  # between a request and what a person does; three in a document
AROUND = 2  # lines above and below the one that the model changes
COMMAND = "github.copilot.did{}NextEditSuggestionItem"


class ToDoEngine(EditEngine):
    """Does the first thing to do in the text that it is asked about, if there is one."""

    def answer(self, request):
        lines = (request.prefix + request.suffix).split("\n")
        row = first_to_do(lines)
        if row is None:
            return EditOutcome(refusal="no_change")
        first, end = max(0, row - AROUND), min(len(lines), row + 1 + AROUND)
        block = (*lines[first:row], *done(lines[row]), *lines[row + 1 : end])
        return EditOutcome(first, end, block, probability=0.9)


def first_to_do(lines):
    return next((row for row, line in enumerate(lines) if line.startswith("todo")), None)


def done(line):
    """Return what becomes of a line: another one, two, or none."""
    return {"0": ["done 🙂"], "1": ["done", "and 🙂 more"], "2": []}[line[-1]]


class Document:
    """A document of a client that applies edits as the protocol allows it, and checks each of them."""

    def __init__(self, shown, engine, seed):
        self.shown, self.engine, self.draw = shown, engine, random.Random(seed)  # noqa: S311 - a test draws
        self.end = self.draw.choice(["\n", "\r\n", "\r"])
        lines = [f"todo {seed} {n}" for n in range(3)] + ["x = '🙂'", "é = 1", f"y = {seed}"]
        self.draw.shuffle(lines)
        self.expected = [*lines, ""]  # what the text is if edits are applied where they belong
        self.buffer = LineBuffer(self.end.join(self.expected))
        self.asked = []
        self.rejected = None
        self.num_applied = 0
        shown.open_around("", self.end.join(self.expected))

    async def run(self):
        for _ in range(3):
            self.engine.is_held = self.draw.random() < 0.5
            self.types()
            self.asks()
            for _ in range(self.draw.randrange(3)):
                self.draw.choice([self.types, self.types_and_undoes, self.asks, self.cancels])()
                if self.draw.random() < 0.3:
                    await self.shown.run("foregram.why")  # the server catches up
            self.engine.is_held = False
            await self.takes_answers()
            if self.draw.random() < 0.5:
                self.asks()
                await self.takes_answers()
        self.shown.close()

    def types(self):
        """Insert or delete a line that no edit is about."""
        row = self.draw.randrange(len(self.expected) - 1)
        if self.expected[row].startswith("todo") or self.draw.random() < 0.5:
            self._replace(row, row, self.draw.choice([["typed 🙂"], [""], ["a", "b"]]))
        else:
            self._replace(row, row + 1, [])

    def types_and_undoes(self):
        self._replace(0, 0, ["undone"])
        self._replace(0, 1, [])

    def asks(self):
        row = self.draw.randrange(len(self.expected))
        self.asked.append(next_edit(self.shown, line=row))

    def cancels(self):
        request_id = f"{self.shown.version}.{len(self.asked)}"
        self.asked.append(next_edit(self.shown, request_id=request_id))
        self.shown.cancel(request_id)

    async def takes_answers(self):
        for answer in self.asked:
            with suppress(JsonRpcException, asyncio.CancelledError):
                edits = (await answer).edits
                assert len(edits) <= 1
                for edit in edits:
                    await self._take(edit)
        self.asked.clear()

    async def _take(self, edit):
        if edit.textDocument.version != self.shown.version:
            return  # the text has changed
        row = first_to_do(self.expected)
        start, end = edit.range.start, edit.range.end
        assert row is not None
        assert row - AROUND <= start.line <= end.line <= row + 1 + AROUND
        assert self.rejected != (self.shown.version, edit.text)
        if self.draw.random() < 0.5:  # then the next one is asked for ahead
            command = {"command": edit.command.command, "arguments": list(edit.command.arguments)}
            item = {"item": {"command": command}}
            self.shown.client.protocol.notify("textDocument/didShowInlineEdit", item)
        what = self.draw.choice(["Accept", "Accept", "Accept", "Reject", "Ignore", ""])
        if what == "Accept":
            first, last = (types.Position(at.line, at.character) for at in (start, end))
            self._change(first, last, edit.text)
            self.expected[row : row + 1] = done(self.expected[row])
            assert list(self.buffer.lines) == self.expected
            self.num_applied += 1
        if what == "Reject":
            self.rejected = self.shown.version, edit.text
        if what:
            await self.shown.run(COMMAND.format(what), *edit.command.arguments)

    def _replace(self, first, end, lines):
        text = "".join(line + self.end for line in lines)
        self._change(types.Position(first, 0), types.Position(end, 0), text)
        self.expected[first:end] = lines

    def _change(self, start, end, text):
        self.shown.replace(start, end, text)
        self.buffer.apply(types.Range(start, end), text)


async def test_an_edit_is_applied_once_to_the_text_that_it_is_for_and_in_its_block(tmp_path):
    run, engine, num_applied = RuntimeFolder.open(tmp_path / "run"), ToDoEngine(words=()), 0
    environ = {
        "FOREGRAM_RUNTIME": str(run.path),
        "FOREGRAM_CACHE": str(tmp_path),
        "FOREGRAM_CONFIG": str(tmp_path / "foregram.toml"),
    }
    async with (
        running_host(run.path, engine, token=run.token()),
        editor(environ=environ, command=None) as shown,
    ):
        for seed in range(RACES // 3):
            document = Document(shown, engine, seed)
            try:
                await document.run()
            except AssertionError as error:
                error.add_note(f"in document {seed}")
                raise
            num_applied += document.num_applied
    assert num_applied > RACES / 4
