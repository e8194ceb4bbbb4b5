"""Edits that are asked for in words, in the real VS Code workbench."""

import pytest

from tests.support.vscode import scripted_window
from tests.support.vscode_server import TIDY_KEY

SHOP = "def total(items):\n    return sum(items)\n"
ACCEPT = ".editor-actions .action-label[aria-label^='Accept the Edit']"  # where keys know it, too
TYPED = "def total(items: list[float]) -> float:"


@pytest.fixture
def window(code, script):
    script.status("Tiny on cpu", model="Tiny")
    script.behaves(commands=["foregram.edit"])
    with scripted_window(code, script) as opened:
        (opened.folder / "shop.py").write_text(SHOP)
        opened.open("shop.py")
        opened.until(lambda: script.heard("textDocument/didOpen"), "the document")
        yield opened


def ask(window, instruction="add type hints"):
    window.go_to(1, 5)
    window.command("foregram: Edit…")
    window.answer(instruction)


def shows_edit(window):
    changed = window.page.locator(".editor.modified .view-lines")
    is_drawn = TYPED in "".join(changed.all_text_contents()).replace("\u00a0", " ")
    return is_drawn and window.page.locator(ACCEPT).count() > 0


def edit(version=1):
    where = {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 17}}
    return {"version": version, "edits": [{"range": where, "newText": TYPED}]}


def asked(script):
    return [
        one["arguments"][0]
        for one in script.heard("workspace/executeCommand")
        if one["command"] == "foregram.edit"
    ]


def test_an_edit_is_shown_as_a_difference_and_accepting_it_is_one_step_to_undo(script, window):
    script.answers("foregram.edit", edit())
    ask(window)
    window.until(lambda: shows_edit(window), "the change")
    (request,) = asked(script)
    assert request["uri"].endswith("/shop.py")
    assert request["range"]["start"] == request["range"]["end"] == {"line": 0, "character": 4}
    assert (request["version"], request["instruction"]) == (1, "add type hints")
    assert request["preview"]
    assert (window.folder / "shop.py").read_text() == SHOP
    window.press("Control+Enter")
    window.until(lambda: window.tabs() == ["shop.py"], "the difference is closed")
    window.wait_for_document(SHOP.replace("def total(items):", TYPED))
    window.press("Control+z")
    window.wait_for_document(SHOP)
    assert not window.is_dirty()


def test_an_edit_that_is_discarded_changes_nothing(script, window):
    script.answers("foregram.edit", edit())
    ask(window)
    window.until(lambda: shows_edit(window), "the change")
    window.page.click(".editor-actions .action-label[aria-label^='Discard the Edit']")
    window.until(lambda: window.tabs() == ["shop.py"], "the difference is closed")
    assert window.screen().document == SHOP
    assert not window.is_dirty()


def test_an_edit_of_a_text_that_has_changed_meanwhile_is_refused(script, window):
    script.answers("foregram.edit", edit())
    ask(window)
    window.until(lambda: shows_edit(window), "the change")
    window.page.locator(".tabs-container .tab").first.click()
    window.until(lambda: not shows_edit(window), "the text alone")
    window.go_to(2, 1)
    window.type("#")
    window.wait_for_document(SHOP.replace("    return", "#    return"))
    window.command("foregram: Accept the Edit")
    window.wait_for_message("shop.py has changed meanwhile: ask again")
    assert window.screen().document == SHOP.replace("    return", "#    return")


def test_an_action_of_the_server_is_shown_before_it_is_made(script, window):
    where = {"start": {"line": 0, "character": 0}, "end": {"line": 1, "character": 0}}
    uri = f"file://{window.folder}/shop.py"
    given = {"uri": uri, "version": 1, "range": where, "instruction": "Simplify."}
    command = {"title": "Simplify", "command": "foregram.edit", "arguments": [given]}
    action = {"title": "Simplify", "kind": "refactor.rewrite", "command": command}
    script.answers("textDocument/codeAction", [action])
    script.answers("foregram.edit", edit())
    window.go_to(1, 1)
    window.press("Shift+ArrowDown", "Control+.")
    window.page.click(".action-widget .monaco-list-row:has-text('Simplify')")
    window.until(lambda: shows_edit(window), "the change")
    assert asked(script)[0]["preview"]
    assert (window.folder / "shop.py").read_text() == SHOP


def test_why_there_is_no_edit_is_said_and_nothing_is_said_of_one_that_is_cancelled(script, window):
    script.refuses("foregram.edit", "the model would change nothing")
    ask(window)
    window.wait_for_message("foregram: the model would change nothing")
    script.refuses("foregram.edit", "cancelled", -32800)
    before = len(window.messages())
    ask(window, "rename items")
    window.until(lambda: len(asked(script)) == 2, "the request")
    window.until(lambda: len(window.messages()) == before, "no progress and no further message")
    assert window.tabs() == ["shop.py"]


def test_an_edit_ends_with_its_tab(script, window):
    script.answers("foregram.edit", edit())
    ask(window)
    window.until(lambda: shows_edit(window), "the change")
    window.press(TIDY_KEY)  # closes it
    window.until(
        lambda: window.tabs() == ["shop.py"],
        lambda: f"the difference is closed; there are {window.tabs()}",
    )
    window.press("Control+Enter")
    window.until(window.is_dirty, "a new line, as in other texts")
    assert TYPED not in window.screen().document


def test_of_two_edits_the_second_is_shown(script, window):
    script.holds("foregram.edit")
    ask(window)
    window.until(lambda: len(asked(script)) == 1, "the first request")
    ask(window, "rename items")
    window.until(lambda: len(asked(script)) == 2, "the second request")
    script.answers("foregram.edit", edit())
    window.until(lambda: shows_edit(window), "the change")
    window.until(lambda: not window.messages(), "no progress")
    assert len(window.tabs()) == 2


def test_an_edit_is_cancelled_where_its_progress_is_shown(script, window):
    script.holds("foregram.edit")
    ask(window)
    window.wait_for_message("foregram: add type hints")
    window.press_button("Cancel")
    window.until(lambda: script.heard("$/cancelRequest"), "the server knows")
    script.refuses("foregram.edit", "cancelled", -32800)
    window.until(lambda: not window.messages(), "no progress and no message")
    assert window.tabs() == ["shop.py"]


def test_a_server_that_fails_at_an_edit_leaves_one_sentence(script, window):
    script.refuses("foregram.edit", "Traceback: KeyError", -32603)
    ask(window)
    window.wait_for_message("foregram: the server gave no answer, and its log may say why")
    assert not any("Traceback" in one for one in window.messages())
