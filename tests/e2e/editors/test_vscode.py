"""What a person does with ghost text in the real VS Code workbench, with the offline model."""

from contextlib import contextmanager

import pytest

from tests.support.completion_hosts import metric
from tests.support.vscode_sources import BODY, LOOP, OPEN_ENDED, source

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.model,
    pytest.mark.editors,
    pytest.mark.timeout(400),  # the first start on a machine converts the model
]

SETTINGS = {"foregram.timeLimitMs": 20_000}  # a busy machine shortens no text


@pytest.fixture
def at(code):
    """A window with a source's file open and the caret at its place, once the server is ready."""

    @contextmanager
    def opened(place):
        with code.kept_window(SETTINGS) as window:
            go_to(place, window)
            yield window

    return opened


def go_to(place, window):
    window.wait_until_ready()
    window.open(place.write(window.folder))
    window.go_to(place.line, place.column)


def test_tab_accepts_the_ghost_text_and_the_host_hears_of_it(at, environ):
    before = metric(environ, 'foregram_feedback_total{kind="accepted"}')
    with at(LOOP) as window:
        window.type("total")
        seen = window.wait_for_ghost()
        assert seen.document == LOOP.text.replace("        \n", "        total\n")
        window.press("Tab")
        window.wait_for_document(seen.preview)
        assert window.save() == seen.preview
        window.until(
            lambda: metric(environ, 'foregram_feedback_total{kind="accepted"}') > before,
            "the host hears of the accept",
        )


def test_a_ghost_text_of_several_lines_is_accepted_as_it_was_shown(at):
    with at(BODY) as window:
        window.press("Enter")
        seen = window.wait_for_ghost()
        assert "\n" in seen.ghost
        window.press("Tab")
        window.wait_for_document(seen.preview)
        assert window.save() == seen.preview


def test_the_file_that_is_saved_holds_no_ghost_text(at):
    with at(LOOP) as window:
        window.type("total")
        seen = window.wait_for_ghost()
        assert window.save() == seen.document


def test_typing_along_never_takes_the_ghost_text_away(at):
    with at(LOOP) as window:
        window.type("t")
        seen = window.wait_for_ghost()
        typed = seen.ghost[:16]
        watched = window.type_watched(typed)
        assert watched.polls > len(typed)
        assert watched.gaps == 0
        assert set(watched.previews) == {seen.preview}
        assert window.ghost() == seen.ghost[len(typed) :]


def test_typing_along_over_a_bracket_that_is_closed_by_itself_keeps_the_ghost_text(at):
    place = source(LOOP.text.replace("        \n    return total\n", "        print|\n"))
    with at(place) as window:
        window.type("(")
        seen = window.wait_for_ghost()
        watched = window.type_watched(seen.ghost[:4])
        assert watched.gaps == 0
        window.press("Tab")
        assert window.save() == seen.preview


def test_typing_along_over_the_end_of_a_line_keeps_the_ghost_text(at):
    with at(BODY) as window:
        window.press("Enter")
        seen = window.wait_for_ghost()
        first, _, rest = seen.ghost.partition("\n")
        assert rest
        watched = window.type_watched(f"{first}\n{rest.strip()[:3]}")
        assert watched.gaps == 0
        window.press("Tab")
        assert window.save() == seen.preview


def test_another_text_than_the_ghost_text_takes_it_away(at):
    with at(LOOP) as window:
        window.type("t")
        seen = window.wait_for_ghost()
        window.type("zq")
        window.until(lambda: seen.ghost not in window.screen().preview, "the ghost text is gone")
        assert window.screen().document == seen.document.replace(" t\n", " tzq\n")


def test_ctrl_right_accepts_a_word_and_the_rest_stays(at):
    with at(LOOP) as window:
        window.type("total")
        seen = window.wait_for_ghost()
        window.press("Control+ArrowRight")
        window.until(lambda: window.screen().document != seen.document, "a word")
        first = window.wait_for_ghost()
        window.press("Control+ArrowRight")
        window.until(lambda: window.screen().document != first.document, "another word")
        after = window.wait_for_ghost()
        assert seen.preview == first.preview == after.preview
        assert len(seen.ghost) > len(first.ghost) > len(after.ghost)
        assert window.save() == after.document


def test_ctrl_alt_right_accepts_a_line_and_the_rest_stays(at):
    with at(BODY) as window:
        window.press("Enter")
        seen = window.wait_for_ghost()
        first, _, rest = seen.ghost.partition("\n")
        assert rest
        window.press("Control+Alt+ArrowRight")
        window.until(lambda: first in window.screen().document, "the first line")
        after = window.wait_for_ghost()
        assert rest.endswith(after.ghost)
        assert after.preview == seen.preview


def test_a_part_that_is_accepted_is_told_to_the_host(at, environ):
    name = 'foregram_feedback_total{kind="partly_accepted"}'
    before = metric(environ, name)
    with at(LOOP) as window:
        window.type("total")
        window.wait_for_ghost()
        window.press("Control+ArrowRight")
        window.until(lambda: metric(environ, name) > before, "the host hears of the word")


def test_an_explicit_request_offers_candidates_to_walk_through(at):
    with at(OPEN_ENDED) as window:
        window.command("foregram: Suggest Now")
        first = window.wait_for_ghost()
        window.press("Alt+]")
        window.until(lambda: window.ghost() not in ("", first.ghost), "another candidate")
        second = window.wait_for_ghost()
        window.press("Alt+[")
        window.until(lambda: window.ghost() == first.ghost, "the first candidate again")
        window.press("Alt+]")
        window.until(lambda: window.ghost() == second.ghost, "the other candidate again")
        window.press("Tab")
        assert window.save() == second.preview


def test_undo_takes_back_what_tab_has_inserted_and_nothing_else(at):
    with at(LOOP) as window:
        window.type("total")
        seen = window.wait_for_ghost()
        window.press("Tab")
        window.wait_for_document(seen.preview)
        window.press("Control+z")
        window.wait_for_document(seen.document)
        assert window.save() == seen.document


def test_the_line_ends_of_a_windows_file_stay(at):
    place = source(LOOP.text.replace("        \n", "        |\n"))
    with at(place) as window:
        (window.folder / "windows.py").write_bytes(BODY.text.replace("\n", "\r\n").encode())
        window.open("windows.py")
        window.go_to(BODY.line, BODY.column)
        window.press("Enter")
        seen = window.wait_for_ghost()
        window.press("Tab")
        window.wait_for_document(seen.preview)
        window.save()
        written = (window.folder / "windows.py").read_bytes().decode()
        assert written == seen.preview.replace("\n", "\r\n")


def test_signs_beyond_the_basic_plane_before_the_caret_move_nothing(at):
    place = source(LOOP.text.replace("        \n", '|        smile = "😀😀"; \n'))
    with at(place) as window:
        window.press("End")
        window.type("total")
        seen = window.wait_for_ghost()
        window.press("Tab")
        window.wait_for_document(seen.preview)
        assert window.save() == seen.preview
        assert '"😀😀"; total' in seen.preview


def test_a_language_is_switched_off_and_on(at):
    with at(LOOP) as window:
        window.command("foregram: Turn On or Off for This Language")
        window.wait_for_status("circle-slash", saying="Python")
        window.type("t")
        window.command("foregram: Why No Suggestion")
        window.wait_for_message("Off for")
        assert window.ghost() == ""
        window.command("foregram: Turn On or Off for This Language")
        window.wait_until_ready()
        window.type("otal")
        assert window.wait_for_ghost().ghost


def test_the_menu_switches_completion_off_for_this_workspace_alone(at):
    with at(LOOP) as window:
        window.click_status()
        window.pick("Turn Off Here")
        window.wait_for_status("circle-slash")
        assert not (window.folder / ".vscode").exists()  # others may share the folder
        window.click_status()
        window.pick("Turn On Here")
        window.wait_until_ready()
        window.go_to(LOOP.line, LOOP.column)
        window.type("total")
        assert window.wait_for_ghost().ghost


def test_the_menu_offers_all_that_can_be_done(at):
    with at(LOOP) as window:
        window.click_status()
        choices = "; ".join(window.choices())
    for entry in (
        *("Turn Off Here", "Turn Off Everywhere", "Turn Off for Python", "Suggest Now"),
        *("Why No Suggestion", "Choose Model", "Choose Where", "Snooze"),
        *(
            "Open Settings",
            "Restart foregram",
            "Show Logs",
            "Check Installation",
            "Install or Update",
        ),
    ):
        assert entry in choices


def test_a_restarted_server_completes_again(at):
    with at(LOOP) as window:
        window.command("foregram: Restart foregram")
        window.wait_for_status("loading", saying="Starting")
        window.wait_until_ready()
        window.go_to(LOOP.line, LOOP.column)
        window.type("total")
        assert window.wait_for_ghost().ghost


def test_the_doctor_works_in_the_background_and_its_findings_can_be_read(at):
    with at(LOOP) as window:
        window.command("foregram: Check Installation")
        window.until(lambda: "foregram doctor" in window.status_bar(), "its progress")
        window.until(lambda: "foregram doctor" not in window.status_bar(), "its end", limit_s=60)
        report = window.wait_for_report("foregram doctor", "offline")
        assert "python" in report.lower()
        assert not window.messages()


def test_ghost_text_and_the_menu_of_words_live_together(code, tmp_path):
    settings = {**SETTINGS, "editor.quickSuggestions": {"other": "on"}}
    with code.window(tmp_path, settings) as window:
        go_to(LOOP, window)
        window.type("tot")
        window.page.wait_for_selector(".suggest-widget.visible .monaco-list-row")
        seen = window.wait_for_ghost()
        assert seen.preview.startswith(LOOP.text.partition("        \n")[0] + "        tot")
