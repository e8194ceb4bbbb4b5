"""Ghost text that grows: a longer one takes the place of the shorter one, which never goes away."""

from contextlib import suppress

import pytest
from playwright.sync_api import TimeoutError as PageTimeout

from tests.support.neovim import ALL_WAYS
from tests.support.polling import until
from tests.support.vscode import scripted_window

INLINE = "textDocument/inlineCompletion"
CHANGE = "textDocument/didChange"
MORE = "foregram/moreText"
SURE, WHOLE = "+ one", "+ one + two\nprint(total)"
DRAWN = pytest.mark.parametrize("start_neovim", ALL_WAYS, indirect=True, ids="-".join)


def answers_with(script, text):
    """Answer with an insertion; one without a range replaces the word before the cursor."""
    command = {"title": "", "command": "scripted.accept", "arguments": ["one"]}
    script.answers(INLINE, {"items": [{"insertText": text, "command": command}]})


def has_more(script, text=WHOLE, **place):
    answers_with(script, text)
    script.says(MORE, **(script.heard(CHANGE)[-1]["textDocument"] | place))


@pytest.fixture
def window(code, script):
    script.status("Tiny on cpu")
    answers_with(script, SURE)
    with scripted_window(code, script) as opened:
        opened.wait_for_status("sparkle", saying="Tiny on cpu")
        (opened.folder / "shop.py").write_text("total = 0\n")
        opened.open("shop.py")
        opened.press("End")

        def is_shown() -> bool:
            opened.type(" ")  # VS Code does not always ask for the first keys in a window
            with suppress(PageTimeout):
                opened.page.wait_for_function("() => foregramTest.ghost()", timeout=3000)
            return bool(opened.ghost())

        opened.until(is_shown, "ghost text")
        opened.wait_for_ghost()
        yield opened


def wait_for_all_messages(script, window):
    script.answers("foregram.why", {"now": None, "answers": []})
    window.command("foregram: Why No Suggestion")
    window.until(lambda: script.heard("workspace/executeCommand"), "a later request")


def test_vscode_lengthens_what_it_shows_and_never_takes_it_away(window, script):
    window.page.evaluate("() => foregramTest.watch()")
    has_more(script)
    window.until(lambda: "print" in window.ghost(), "the longer text")
    has_more(script, f"{WHOLE}\nend()")
    window.until(lambda: "end" in window.ghost(), "the longest text")
    seen = window.page.evaluate("() => foregramTest.end()")
    assert seen["gaps"] == 0
    lengths = [len(one) for one in seen["previews"]]
    assert len(lengths) == 3
    assert lengths == sorted(lengths)
    assert {one["context"]["triggerKind"] for one in script.heard(INLINE)} == {2}
    window.press("Tab")
    window.until(lambda: "end()" in window.screen().document, "the accepted text")
    window.until(lambda: script.heard("workspace/executeCommand"), "word of the accept")


def test_vscode_leaves_a_dismissed_text_and_another_version_alone(window, script):
    num_asked = len(script.heard(INLINE))
    has_more(script, version=1)
    window.press("Escape")
    window.until(lambda: not window.ghost(), "no ghost text")
    has_more(script)
    script.status("it has said so")
    window.wait_for_status("sparkle", saying="it has said so")
    wait_for_all_messages(script, window)
    assert window.ghost() == ""
    assert len(script.heard(INLINE)) == num_asked


@pytest.fixture
def editor(scripted_neovim, script):
    answers_with(script, SURE)
    editor = scripted_neovim("")
    running = "return require('foregram.client').get() ~= nil"
    editor.until(lambda: editor.lua(running), "the server")
    editor.type("itotal = ")
    until(lambda: script.heard(CHANGE), "the text")
    editor.until(lambda: editor.view() == ("total = ", SURE), "ghost text")
    return editor


@DRAWN
def test_neovim_lengthens_what_it_shows_and_never_takes_it_away(editor, script):
    editor.watch("total = " + WHOLE)
    has_more(script)
    editor.until(lambda: editor.ghost() == WHOLE, "the longer text")
    seen = editor.watched()
    assert seen.gaps == []
    assert set(seen.others) <= {f"total = |{SURE}"}
    *_, asked = script.heard(INLINE)
    assert asked["context"] == {"triggerKind": 2}
    editor.type("<Tab>")
    editor.until_text("total = " + WHOLE)


@DRAWN
def test_neovim_leaves_a_dismissed_text_and_another_version_alone(editor, script):
    num_asked = len(script.heard(INLINE))
    has_more(script, version=1)
    editor.lua("require('foregram.actions').perform('dismiss')")
    editor.until_no_ghost()
    has_more(script)
    script.status("it has said so")
    editor.until(lambda: editor.state()["message"] == "it has said so", "all messages")
    editor.lua("""
        local client = require("foregram.client").get()
        client:request_sync("workspace/executeCommand", { command = "nothing" }, 20000)
    """)
    assert not editor.ghost()
    assert len(script.heard(INLINE)) == num_asked
