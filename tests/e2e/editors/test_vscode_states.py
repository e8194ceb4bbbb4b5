"""VS Code's messages about states and documents, and the remedies that it offers."""

from contextlib import contextmanager

import pytest

from lsp_server.model_choice import offered_models
from tests.support.vscode import scripted_window

ANSWER = {"file": "shop.py", "line": 1, "reason": "blank", "sentence": "only white space"}
OLD = {**ANSWER, "time_s": 1000.0, "age_s": 12.4}
OLDER = {**ANSWER, "reason": "left_scope", "sentence": "it left the block", "age_s": 700.0}
PROMPT = "45 tokens; no other file was open"
SECRET = {**OLD, "reason": "secret_file", "sentence": "the file may hold secrets", "age_s": 0.0}


@pytest.fixture
def script(script):
    """The server is ready."""
    script.status("Tiny on cpu", model="Tiny")
    script.answers("foregram.hostUse", {"running": True, "model": "Tiny", "numOtherClients": 0})
    script.answers("foregram.models", offered_models())
    return script


@pytest.fixture
def opened(code, script):
    @contextmanager
    def open_window(settings=None):
        with scripted_window(code, script, settings) as window:
            (window.folder / "shop.py").write_text("total = 0\n")
            (window.folder / ".env").write_text("KEY=1\n")
            window.open("shop.py")
            window.until(lambda: script.heard("textDocument/didOpen"), "the document")
            yield window

    return open_window


@pytest.fixture
def window(opened):
    with opened() as one:
        one.wait_for_status("sparkle", saying="Tiny")
        yield one


def first_choice(window):
    window.click_status()
    window.choices()
    return window.focused_choice()


def test_the_first_document_is_told_to_each_server_that_has_started(script, window):
    def told():
        focused = [one.get("textDocument", {}) for one in script.heard("textDocument/didFocus")]
        return [one["uri"].rpartition("/")[2] for one in focused if one]

    window.until(lambda: told() == ["shop.py"], lambda: f"one document; there are {told()}")
    window.command("foregram: Restart foregram")
    window.until(lambda: told() == 2 * ["shop.py"], lambda: f"it, again; there are {told()}")


def test_why_speaks_of_this_file_and_place_with_the_age_and_all_of_it_on_demand(script, window):
    script.answers("foregram.why", {"now": None, "answers": [OLD, OLDER], "prompt": PROMPT})
    window.go_to(1, 3)
    window.command("foregram: Why No Suggestion")
    assert "shop.py, line 1, 12 s ago: only white space" in window.wait_for_message("ago")
    (asked,) = [
        one["arguments"]
        for one in script.heard("workspace/executeCommand")
        if one["command"] == "foregram.why"
    ]
    assert asked[0]["textDocument"]["uri"].endswith("/shop.py")
    assert asked[0]["position"] == {"line": 0, "character": 2}
    window.press_button("Show All")
    report = window.wait_for_report("why no suggestion in shop.py")
    assert "12 s ago" in report
    assert PROMPT in report
    assert "11 min ago  shop.py, line 1: it left the block (left_scope)" in report


def test_what_stands_against_a_suggestion_now_comes_with_a_button_that_mends_it(script, window):
    remedy = {"action": "allowFile", "title": "Allow this file"}
    script.answers("foregram.why", {"now": {**SECRET, "remedy": remedy}, "answers": [OLD]})
    window.command("foregram: Why No Suggestion")
    assert "shop.py: the file may hold secrets" in window.wait_for_message("secrets")
    window.press_button("Allow this file")
    window.wait_for_settings("foregram.allowSecretFiles")


def test_a_suggestion_that_is_asked_for_by_a_button_is_shown(script, window):
    remedy = {"action": "trigger", "title": "Ask for a suggestion"}
    script.answers("foregram.why", {"now": None, "answers": [{**OLD, "remedy": remedy}]})
    item = {"insertText": "import shop", "command": {"title": "", "command": "foregram.accept"}}
    window.go_to(2, 1)
    window.command("foregram: Why No Suggestion")
    window.wait_for_message("12 s ago")
    script.answers("textDocument/inlineCompletion", {"items": [item]})
    window.press_button("Ask for a suggestion")
    assert window.wait_for_ghost().ghost == "import shop"
    assert script.heard("textDocument/inlineCompletion")[-1]["context"]["triggerKind"] == 1


def test_what_is_said_of_a_document_ends_with_it(script, window):
    window.open(".env")
    script.status("the file may hold secrets", "Inactive", reason="secret_file")
    window.wait_for_status("circle-slash", saying="secrets")
    script.answers("didChangeStatus", None)  # the server says nothing of the next document
    window.open("shop.py")
    window.wait_for_status("sparkle", saying="Tiny on cpu")


def test_in_the_ready_state_the_menu_begins_with_a_suggestion_and_leads_to_the_settings(window):
    assert "Suggest Now" in first_choice(window)
    window.pick("Open Settings")
    window.wait_for_settings("@ext:foregram.foregram")
    window.until(window.settings, "the settings are found")
    assert "Suggest code as you type." in window.settings()[0]


def test_a_remote_host_that_is_not_safe_is_refused_first_and_escape_changes_nothing(code, window):
    window.command("foregram: Choose Where the Model Runs…")
    window.pick("A remote host")
    window.fill("http://gpu.example:8012")
    window.wait_for_objection("Others on the way could read your code and the token")
    window.answer("https://gpu.example:8012")
    window.page.locator(".quick-input-title", has_text="Token for https://gpu.example").wait_for()
    window.press("Escape")
    window.wait_for_status("sparkle")
    assert "foregram.hostUrl" not in code.server.settings()


def test_a_snooze_ends_by_the_first_entry_of_the_menu(window):
    window.command("foregram: Snooze…")
    window.pick("5 minutes")
    window.wait_for_status("circle-slash", saying="Snoozed until")
    assert "Turn On Again" in first_choice(window)
    window.pick("Turn On Again")
    window.wait_for_status("sparkle")


def test_a_wrong_model_is_refused_where_it_is_typed_and_a_right_one_is_set(code, script, window):
    wrong = {"ok": False, "sentence": "no model is called qwen9b", "near": ["7b", "14b"]}
    script.answers("foregram.checkModel", wrong)
    window.command("foregram: Choose Model…")
    assert any("downloads 15.2 GB" in one for one in window.choices())
    window.fill("Another one")  # the last of more entries than the list shows at once
    window.pick("Another one")
    window.fill("qwen9b")
    window.wait_for_objection("no model is called qwen9b; did you mean 7b or 14b?")
    window.press("Enter")
    script.answers("foregram.checkModel", {"ok": True, "near": []})
    window.answer("me/mine")
    window.until(lambda: code.server.settings().get("foregram.model") == "me/mine", "the setting")
    window.until(lambda: "stop --force" in script.ran, "the host ends")


def test_ending_a_host_that_others_use_is_asked_first(code, script, window):
    script.answers("foregram.hostUse", {"running": True, "model": "Tiny", "numOtherClients": 2})
    window.command("foregram: Choose Model…")
    window.pick("7b")
    dialog = window.dialog()
    assert "2 others use Tiny" in dialog.text_content()
    dialog.locator(".monaco-button:has-text('Cancel')").click()
    dialog.wait_for(state="hidden")
    assert "stop --force" not in script.ran
    assert "foregram.model" not in code.server.settings()
    window.command("foregram: Choose Model…")
    window.pick("7b")
    window.dialog().locator(".monaco-button:has-text('Load 7b')").click()
    window.until(lambda: "stop --force" in script.ran, "the host ends")
    assert code.server.settings()["foregram.model"] == "7b"


def test_another_model_than_the_configured_one_is_said_and_mended(script, window):
    remedy = {"action": "restart", "title": "Restart with Huge"}
    said = 'Tiny is running, but the settings ask for "Huge"'
    script.status(said, "Warning", configuredModel="Huge", remedy=remedy)
    window.wait_for_status("warning", saying=said)
    assert "Restart with Huge" in first_choice(window)
    window.pick("Restart with Huge")
    window.until(lambda: "stop --force" in script.ran, "the host ends")


def test_the_doctors_words_can_be_read_in_a_document_as_they_come(script, window):
    script.prints("doctor", "runtime folder: good\nmodel: no model is called qwen9b\n")
    window.command("foregram: Check Installation")
    report = window.wait_for_report("foregram doctor", "qwen9b")
    assert report.splitlines()[:2] == [
        "runtime folder: good",
        "model: no model is called qwen9b",
    ]
    assert not window.is_dirty()


def test_what_was_saved_can_be_read_from_the_menu_and_forgotten(script, window):
    script.prints("saved", "2026-11-29: 5 keystrokes saved\n")
    window.click_status()
    window.pick("Show Saved Keystrokes")
    assert "5 keystrokes saved" in window.wait_for_report("foregram saved", "keystrokes")
    window.command("foregram: Reset Saved Keystrokes")
    window.until(lambda: "saved --reset" in script.ran, "the reset")


def test_the_logs_of_the_window_and_of_the_host_can_be_read_in_a_document(script, window):
    script.prints("logs", "listening\nTiny is loaded\n")
    script.says("window/logMessage", type=1, message="the host has lost its GPU")
    window.command("foregram: Show Logs")
    window.wait_for_report("foregram logs")

    def end():
        """The end of the report: earlier tests may have logged more than a screen holds."""
        window.press("Control+End")
        return window.screen().document

    window.until(lambda: "Tiny is loaded" in end(), "what the script prints")
    report = end()
    assert "the host has lost its GPU" in report.partition("The model's process")[0]
    assert "logs --lines 200" in script.ran
