"""VS Code's messages about a wrong server, setting, address or file."""

import json
import subprocess

import pytest

from lsp_server.reasons import Reason
from tests.support.editor_home import COMMAND
from tests.support.sources import LOOP

START_LIMIT_S = 38.0  # the extension waits 30 s for a server's first answer
MAX_BYTES = 4 * 2**20  # the server's limit for one document
WRONG = {"maxTokens": "many", "languages": ["python"], "enable": "perhaps"}


@pytest.fixture
def folder(tmp_path):
    """A folder for the window alone."""
    made = tmp_path / "shop"
    made.mkdir()
    return made


def with_server(command):
    return {"foregram.server.command": list(map(str, command))}


def own_messages(window):
    return [one for one in window.messages() if "foregram" in one]


def reasons(environ):
    done = subprocess.run([COMMAND, "why", "--json"], env=environ, capture_output=True, check=True)
    return [answer["reason"] for answer in json.loads(done.stdout)]


def test_a_command_that_is_not_there_is_named(code):
    with code.kept_window(with_server(["/nowhere/foregram"])) as window:
        assert "/nowhere/foregram" in window.wait_for_message("foregram.server.command")
        window.wait_for_status("error", saying="/nowhere/foregram")
        code.server.configure(code.settings)
        window.wait_until_ready()


def test_a_server_that_is_too_old_is_told_with_both_versions(code, script):
    script.behaves(version="0.0.9")
    with code.kept_window(with_server(script.command)) as window:
        message = window.wait_for_message("0.0.9")
        assert "0.1.0 or newer" in message
        window.wait_for_status("error", saying="0.0.9")


@pytest.mark.parametrize("moment", ["start", "initialized"])
def test_a_server_that_ends_is_started_three_times_and_its_reason_told(code, script, moment):
    script.behaves(ends_at=moment, last_words="the disk is full of cats")
    with code.kept_window(with_server(script.command)) as window:
        message = window.wait_for_message("the disk is full of cats")
        assert "3 times" in message
        window.wait_for_status("error", saying="cats")
        assert script.num_starts == 3
        window.command("foregram: Restart foregram")
        window.until(lambda: script.num_starts > 3, "a person may try again")
        code.server.configure(code.settings)
        window.wait_until_ready()


def test_a_server_that_never_answers_is_ended_and_a_good_one_takes_its_place(code, script):
    script.behaves(silent_at="initialize")
    with code.kept_window(with_server(script.command)) as window:
        window.until(lambda: script.num_starts == 1, "its start")
        window.wait_for_status("warning", "error", saying="did not answer", limit_s=START_LIMIT_S)
        code.server.configure(code.settings)
        window.command("foregram: Restart foregram")
        window.wait_until_ready()
        window.type_total()
        assert window.wait_for_ghost().ghost
        assert not script.processes


def test_a_host_that_cannot_be_reached_is_an_error_in_the_status(code, environ):
    with code.kept_window({"foregram.hostUrl": "http://127.0.0.1:9"}) as window:
        status = window.wait_for_status("error", saying="127.0.0.1:9")
        window.type_total()
        window.until(lambda: "host_unreachable" in reasons(environ), "the reason", limit_s=60)
        window.command("foregram: Why No Suggestion")
        window.wait_for_message(f"inventory.py: {status.sentence.removeprefix('foregram: ')}")
        assert window.ghost() == ""


def test_a_file_without_the_right_to_write_is_completed_as_it_can_be_typed_in(code):
    with code.kept_window() as window:
        window.wait_until_ready()
        (window.folder / LOOP.write(window.folder)).chmod(0o444)
        window.open("inventory.py")
        window.go_to(LOOP.line, LOOP.column)
        window.type("total")
        seen = window.wait_for_ghost()
        window.press("Tab")
        window.wait_for_document(seen.preview)
        assert window.is_dirty()
        assert not own_messages(window)


def test_an_untitled_file_is_plain_text_and_is_completed_when_asked(code):
    with code.kept_window() as window:
        window.wait_until_ready()
        window.command("Create: New File...")
        window.pick("Text File")
        window.until(lambda: "Untitled-1" in window.tabs(), "the untitled file")
        before, _, _ = LOOP.text.partition("        \n")
        window.page.keyboard.insert_text(before)
        window.until(lambda: "for item in items" in window.screen().document, "the text")
        window.type("        total")
        window.wait_for_status("circle-slash", saying=Reason.PROSE.sentence)
        assert window.ghost() == ""
        window.command("foregram: Suggest Now")
        seen = window.wait_for_ghost()
        window.press("Tab")
        window.wait_for_document(seen.preview)


def test_a_file_over_the_limit_is_named_as_the_reason(code):
    line = "# nothing but a comment that makes this file large, again and again\n"
    with code.kept_window() as window:
        window.wait_until_ready()
        large = LOOP.text + line * (MAX_BYTES // len(line) + 1000)
        (window.folder / "large.py").write_text(large)
        window.open("large.py")
        window.go_to(LOOP.line, LOOP.column)
        window.type("x")
        window.wait_for_status("circle-slash", saying="the file is too large")
        window.command("foregram: Why No Suggestion")
        window.wait_for_message("large.py: the file is too large")
        assert window.ghost() == ""
        window.type_total()
        assert window.wait_for_ghost().ghost


def test_a_read_only_editor_takes_no_key_and_shows_no_ghost_text(code):
    with code.kept_window() as window:
        ready = window.wait_until_ready()
        window.open(LOOP.write(window.folder, "locked.py"))
        window.command("File: Set Active Editor Read-only in Session")
        window.go_to(LOOP.line, LOOP.column)
        typed = window.type_watched("total")
        window.command("foregram: Suggest Now")
        asked = window.type_watched("s")
        for watched in (typed, asked):
            assert watched.previews == (LOOP.text,)
            assert watched.gaps == watched.frames > 20
        assert window.status() == ready
        assert not own_messages(window)


def test_the_settings_of_a_workspace_cannot_name_a_command_or_a_host(code, folder, script):
    (folder / ".vscode").mkdir()
    named = with_server(script.command) | {"foregram.hostUrl": "http://127.0.0.1:9"}
    (folder / ".vscode/settings.json").write_text(json.dumps(named))
    with code.window(folder) as window:
        window.wait_until_ready()
        window.type_total()
        assert window.wait_for_ghost().ghost
    assert script.ran == []


def test_settings_of_wrong_types_are_named_and_the_rest_works(code, folder):
    settings = {f"foregram.{key}": value for key, value in WRONG.items()}
    with code.window(folder, settings) as window:
        told = lambda: " ".join(window.messages())  # noqa: E731 - asked again and again
        window.until(lambda: all(key in told() for key in WRONG), told)
        window.type_total()
        assert window.wait_for_ghost().ghost
