"""VS Code while the model loads, and the ghost text that comes without another key."""

from contextlib import contextmanager
from typing import Any

import pytest

from tests.support.vscode import scripted_window

INLINE = "textDocument/inlineCompletion"
AUTOMATIC = 2
TEXT = "total = 0\n"
# Without a range, it replaces the word at the caret; in these tests there is none.
ITEM = {"insertText": "+ 1", "command": {"title": "", "command": "foregram.accept"}}
LOADING: dict[str, Any] = {"state": "loading", "busy": True}


@pytest.fixture
def script(script):
    """A server whose model loads, so that its answers are empty."""
    script.status("loading Tiny, 42 %", percentage=42, **LOADING)
    script.answers(INLINE, {"items": []})
    return script


@contextmanager
def window_at_end(code, script, status, settings=None, *, said="42 %"):
    """Open a window with a running server, the caret at the end of the first line."""
    with scripted_window(code, script, settings) as opened:
        # The editor asks only a server that has sent a status.
        opened.wait_for_status("loading", "circle-slash", saying=said)
        (opened.folder / "shop.py").write_text(TEXT)
        opened.open("shop.py")
        opened.wait_for_status(status)
        opened.press("End")
        yield opened


@pytest.fixture
def window(code, script):
    with window_at_end(code, script, "loading") as opened:
        yield opened


def becomes_ready(script, window):
    script.answers(INLINE, {"items": [ITEM]})
    script.status("Tiny on cpu")
    window.wait_for_status("sparkle", saying="Tiny on cpu")
    script.says("foregram/askAgain")


def type_unanswered(script, window, text):
    """Type at the end of the first line, and see that nothing comes of it.

    The first keys in a new window VS Code does not always ask for: more of them follow then.
    """
    window.type(text)
    num_asked = len(script.heard(INLINE))

    def is_asked():
        window.type(" ")
        return len(script.heard(INLINE)) > num_asked

    window.until(is_asked, "a request")
    assert window.ghost() == ""


def wait_for_all_requests(script, window):
    """Wait for a further request, so that all earlier ones have arrived."""
    script.answers("foregram.why", {"now": None, "answers": []})
    window.command("foregram: Why No Suggestion")
    window.until(lambda: script.heard("workspace/executeCommand"), "a later request")


def test_the_server_hears_where_the_cursor_rests(script, window):
    window.press("Home")
    window.until(lambda: script.heard("foregram/cursor"), "word of the cursor")
    *_, rested = script.heard("foregram/cursor")
    assert rested["position"] == {"line": 0, "character": 0}
    assert rested["textDocument"]["uri"].endswith("/shop.py")


def first_line(screen):
    return " ".join(screen.preview.partition("\n")[0].split())


def test_what_was_typed_while_the_model_loads_gets_its_ghost_text_without_another_key(
    script, window
):
    assert script.heard("initialize")[0]["initializationOptions"]["asksAgain"] is True
    type_unanswered(script, window, " + 2 ")
    becomes_ready(script, window)
    assert first_line(window.wait_for_ghost()) == "total = 0 + 2 + 1"
    assert {one["context"]["triggerKind"] for one in script.heard(INLINE)} == {AUTOMATIC}


def test_what_was_typed_while_a_host_restarts_gets_its_ghost_text_too(script, window):
    type_unanswered(script, window, " + 2 ")
    becomes_ready(script, window)
    window.wait_for_ghost()
    script.answers(INLINE, {"items": []})
    script.status("the completion host starts again", **LOADING | {"state": "starting"})
    window.wait_for_status("loading")
    type_unanswered(script, window, "+ 3 ")
    becomes_ready(script, window)
    assert first_line(window.wait_for_ghost()) == "total = 0 + 2 + 3 + 1"


def test_what_was_typed_before_a_look_at_the_logs_gets_its_ghost_text_on_the_way_back(
    script, window
):
    type_unanswered(script, window, " + 2 ")
    window.command("foregram: Show Logs")
    window.wait_for_report("foregram logs", "This window")
    becomes_ready(script, window)
    script.status("asked again on cpu")
    window.wait_for_status("sparkle", saying="asked again")
    window.open("shop.py")
    assert first_line(window.wait_for_ghost()) == "total = 0 + 2 + 1"


def test_a_ghost_text_that_is_there_or_was_dismissed_is_not_asked_for_again(script, window):
    becomes_ready(script, window)
    window.type(" + 2 ")
    window.wait_for_ghost()
    window.press("Escape")
    window.until(lambda: not window.ghost(), "the ghost text is gone")
    before = len(script.heard(INLINE))
    script.says("foregram/askAgain")
    script.status("asked again on cpu")
    window.wait_for_status("sparkle", saying="asked again")
    wait_for_all_requests(script, window)
    assert window.ghost() == ""
    assert len(script.heard(INLINE)) == before


def test_loading_is_said_once_with_a_percentage_in_the_status_item(script, window):
    capabilities = script.heard("initialize")[0]["capabilities"]
    assert capabilities["window"]["workDoneProgress"] is False
    assert "foregram 42 %" in window.status().label
    script.status("loading Tiny, 97 %", percentage=97, **LOADING)
    window.wait_for_status("loading", saying="97 %")
    assert "foregram 97 %" in window.status().label
    script.status("Tiny on cpu")
    window.wait_for_status("sparkle", saying="Tiny on cpu")
    assert window.status().label == "foregram"


@pytest.mark.parametrize(
    "settings", [{"editor.inlineSuggest.enabled": False}, {"foregram.languages": {"python": False}}]
)
def test_where_ghost_text_is_switched_off_nothing_is_asked_again(code, script, settings):
    with window_at_end(code, script, "circle-slash", settings, said="") as window:
        script.answers(INLINE, {"items": [ITEM]})
        script.says("foregram/askAgain")
        script.status("it was told to ask again", "Error")
        window.wait_for_status("error", saying="ask again")
        wait_for_all_requests(script, window)
        assert script.heard(INLINE) == []
