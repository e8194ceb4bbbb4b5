"""A person at an editor with two documents, its server, and a host: each does odd things."""

import asyncio
import random
from typing import Any

from lsprotocol import types

from lsp_server.server import create_server
from lsp_server.setting_layers import Layer
from tests.support.direct_editor import DirectEditor, Offer, Page, Request
from tests.support.editor import utf16_len
from tests.support.scripted_host import ScriptedHost, any_answer

NEXT_EDIT, MENU = "textDocument/copilotInlineEdit", "textDocument/codeAction"
TOLD = "github.copilot.did{}NextEditSuggestionItem"
CANCELLED = types.LSPErrorCodes.RequestCancelled
LINES = ("todo 0", "todo 1", "todo 2", "x = '🙂'", "é = 1", "y = 2", "")
NUM_TURNS = (0, 1, 4, 16, 40, 40)  # of the event loop after a step; a request takes up to 20
STEPS = {  # by how often they are taken
    "host_answers": 30,
    "acts": 16,
    "asks": 7,
    "asks_in_words": 4,
    "applies": 4,
    "shows": 10,
    "types_line": 3,
    "opens": 2,
    "opens_menu": 2,
    "chooses_action": 2,
    "cancels": 2,
    "types_character": 1,
    "undoes": 2,
    "changes_version": 1,
    "reopens": 1,
    "focuses": 1,
    "asks_about_old_version": 1,
    "cancels_progress": 1,
    "closes": 0.5,
    "opens_again": 0.5,
}


class EditSitting:
    """Takes random steps. What a seed draws, and the order of all that happens, is the same again."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)  # noqa: S311 - a test draws
        self.server = create_server(Layer("command line", {}))
        self.host = ScriptedHost()
        self.host.serves(self.server.session)
        self.editor = DirectEditor(self.server)
        self.pages = [Page("file:///shop/a.py"), Page("file:///shop/b.py")]
        self.line_end = self.draw.choice(("\n", "\r\n", "\r"))
        self.offers: list[Offer] = []
        self.actions: list[tuple[Page, Any]] = []  # of a menu
        self.applied: list[object] = []
        self.settled: list[tuple[Any, ...]] = []  # changes that the person judged
        self.num_refused = 0  # edits that the editor did not apply
        self.log: list[str] = []

    async def run(self, num_steps: int) -> None:
        await self.editor.start(speculate=self.draw.random() < 0.7)
        for page in self.pages:
            self.open(page)
        await self.passes(max(NUM_TURNS))
        self.types_line()
        for name in self.draw.choices(list(STEPS), list(STEPS.values()), k=num_steps):
            self.log.append(name)
            getattr(self, name)()
            self.editor.reply()
            await self.passes(self.draw.choice(NUM_TURNS))
        await self.editor.passes(self.is_settled)
        self.take_answers()

    async def passes(self, num_turns: int) -> None:
        for _ in range(num_turns):
            await asyncio.sleep(0)
        self.take_answers()
        for page in self.pages if num_turns == max(NUM_TURNS) else ():
            if not page.num_changes:
                page.first_lines = page.lines

    def is_settled(self) -> bool:
        """Answer what still waits, and return whether nothing is open any more."""
        self.editor.reply()
        self.host_answers()
        self.applies()
        editor, tasks = self.editor, self.server.edit_command._tasks
        return not (editor.unanswered or editor.to_apply or editor.tokens or tasks)

    async def leave(self) -> None:
        await self.server.session.leave()
        self.server.thread_pool.shutdown()

    # The host

    def host_answers(self) -> None:
        """Answer any of the questions that wait."""
        if waiting := [one for one in self.host.waiting if not one.answer.done()]:
            question = self.draw.choice(waiting)
            page = self.editor.pages[question.uri]
            question.answer.set_result(any_answer(question, page.first_lines or (), self.draw))

    # The person

    @property
    def page(self) -> Page:
        """An open page."""
        if not any(one.is_open for one in self.pages):
            self.opens()
        return self.draw.choice([one for one in self.pages if one.is_open])

    def opens(self) -> None:
        for page in [one for one in self.pages if not one.is_open][:1]:
            self.open(page)

    def open(self, page: Page) -> None:
        """Open a page with its text or another, and go on with its versions or begin anew."""
        lines = list(page.lines)
        if len(lines) < len(LINES) // 2 or self.draw.random() < 0.5:
            lines = [*self.draw.sample(LINES, k=len(LINES)), ""]
        version = self.draw.choice((1, page.version, page.version + 1))
        self.editor.open_page(page, self.line_end.join(lines), version)

    def closes(self) -> None:
        self.editor.close_page(self.page)

    def reopens(self) -> None:
        page = self.page
        self.editor.close_page(page)
        self.open(page)

    def opens_again(self) -> None:
        """Open what is open, as a careless client does."""
        self.open(self.page)

    def types_line(self) -> None:
        page = self.page
        row, num_gone = self.draw.randrange(len(page.lines)), self.draw.randrange(2)
        line = self.draw.choice(("typed 🙂", "", "todo 1")) + self.line_end
        text = "" if num_gone else line
        self.editor.change(page, {"range": page.range_of(row, row + num_gone), "text": text})

    def types_character(self) -> None:
        page = self.page
        row = self.draw.randrange(len(page.lines))
        before = page.lines[row][: self.draw.randrange(len(page.lines[row]) + 1)]
        place = {"line": row, "character": utf16_len(before)}
        self.editor.change(page, {"range": {"start": place, "end": place}, "text": "🙂"})

    def undoes(self) -> None:
        page = self.page
        if page.former:
            self.editor.undo(page)

    def changes_version(self) -> None:
        """Go to another version of the same text."""
        page = self.page
        changes = self.draw.choice(((), ({"text": page.buffer.text},)))
        self.editor.change(page, *changes, growth=self.draw.choice((1, 7)))

    def focuses(self) -> None:
        self.editor.notify("textDocument/didFocus", {"textDocument": {"uri": self.page.uri}})

    def asks(self) -> None:
        page = self.page
        self._ask(page, self.draw.choice((page.version, page.version, None)))

    def asks_about_old_version(self) -> None:
        page = self.page
        self._ask(page, max(0, page.version - self.draw.choice((1, 2))))

    def _ask(self, page: Page, version: int | None) -> None:
        place = {"line": self.draw.randrange(len(page.lines)), "character": 0}
        document = {"uri": page.uri, "version": version}
        self.editor.request(NEXT_EDIT, page, {"textDocument": document, "position": place})

    def asks_in_words(self) -> None:
        page = self.page
        first, end = sorted(self.draw.choices(range(len(page.lines)), k=2))
        version = self.draw.choice((page.version, page.version, page.version + 1, None))
        where = page.range_of(first, end + 1)
        self._edit(page, uri=page.uri, range=where, instruction="Do it.", version=version)

    def opens_menu(self) -> None:
        page = self.page
        where = page.range_of(0, self.draw.randrange(1, len(page.lines) + 1))
        params = {
            "textDocument": {"uri": page.uri},
            "range": where,
            "context": {"diagnostics": []},
        }
        self.editor.request(MENU, page, params)

    def chooses_action(self) -> None:
        if self.actions:
            page, action = self.actions.pop(self.draw.randrange(len(self.actions)))
            if page.is_open:
                self._edit(page, **action["command"]["arguments"][0])

    def _edit(self, page: Page, **argument: Any) -> None:
        is_preview = self.draw.random() < 0.5
        self.editor.run("foregram.edit", page, {**argument, "preview": is_preview})

    def cancels(self) -> None:
        if self.editor.unanswered:
            request = self.draw.choice(list(self.editor.unanswered.values()))
            self.editor.notify("$/cancelRequest", {"id": request.id})

    def cancels_progress(self) -> None:
        if self.editor.tokens:
            token = self.draw.choice(self.editor.tokens)
            self.editor.notify("window/workDoneProgress/cancel", {"token": token})

    def shows(self) -> None:
        commands = [one.command for one in self.offers if one.fits and one.command]
        if commands:
            command = self.draw.choice(commands)
            self.editor.notify("textDocument/didShowInlineEdit", {"item": {"command": command}})

    def acts(self) -> None:
        """Accept, reject or ignore an edit, or forget it without a word."""
        if not self.offers:
            return
        fitting = [one for one in self.offers if one.fits]
        offer = self.draw.choice(fitting or self.offers)
        self.offers.remove(offer)
        what = self.draw.choice(("Accept", "Accept", "Accept", "Reject", "Reject", "Ignore", ""))
        if what == "Accept":
            if not offer.fits:
                return
            self.editor.change(offer.page, offer.change)
            self.applied.append(offer.command["arguments"][0] if offer.command else offer)
            if self.draw.random() < 0.5:  # as clients do at once
                self._ask(offer.page, offer.page.version)
        if what and offer.command:
            [name] = offer.command["arguments"]
            if what != "Ignore":
                question = self.host.asked[name]
                self.settled.append((question.version >> 32, question.lines, question.lines_after))
            self.editor.run(TOLD.format(what), offer.page, name)

    def applies(self) -> None:
        """Apply an edit that the server sent, if it is for the present state of its page."""
        if not self.editor.to_apply:
            return
        edit = self.editor.to_apply.pop(self.draw.randrange(len(self.editor.to_apply)))
        if Offer(edit.page, edit.state, {}).fits and self.draw.random() < 0.9:
            [change] = edit.content["edits"]
            self.editor.change(edit.page, {"range": change["range"], "text": change["newText"]})
            self.applied.append(edit)
            self.editor.applied(edit)
        else:
            self.num_refused += 1
            self.editor.applied(edit, "the document changed")

    def take_answers(self) -> None:
        """Keep what may be applied later: each edit says which version it is for."""
        answered, self.editor.answered = self.editor.answered, []
        for request, message in answered:
            if (error := message.get("error")) is not None:
                assert error["code"] == CANCELLED or (error.get("data") or {}).get("reason"), error
            elif request.method == MENU:
                self.actions += [(request.page, one) for one in message["result"]]
            elif request.method == NEXT_EDIT:
                for edit in message["result"]["edits"]:
                    self._keep(request, edit["textDocument"], edit, edit["text"], edit["command"])
            elif result := message["result"]:
                for edit in result["edits"]:
                    self._keep(request, result, edit, edit["newText"])

    def _keep(self, request: Request, versioned: Any, edit: Any, *rest: Any) -> None:
        state = request.state[0], versioned["version"]
        change = {"range": edit["range"], "text": rest[0]}
        self.offers.append(Offer(request.page, state, change, *rest[1:]))
