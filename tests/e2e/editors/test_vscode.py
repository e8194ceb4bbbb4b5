"""Ghost text in the real VS Code workbench, with the offline model."""

from contextlib import contextmanager

import pytest

from tests.support.editor_home import feedback
from tests.support.sources import BODY, LOOP, OPEN_ENDED, source

SETTINGS = {"foregram.timeLimitMs": 20_000}  # a busy machine shortens no text


@pytest.fixture
def at(code):
    @contextmanager
    def opened(place):
        with code.kept_window(SETTINGS) as window:
            window.wait_until_ready()
            window.open_at(place)
            yield window

    return opened


def test_tab_accepts_the_ghost_text_and_the_host_hears_of_it(at, environ):
    before = feedback(environ, "accepted")
    with at(LOOP) as window:
        window.type("total")
        seen = window.wait_for_ghost()
        assert seen.document == LOOP.text.replace("        \n", "        total\n")
        assert window.save() == seen.document  # no ghost text is in the file
        window.press("Tab")
        window.wait_for_document(seen.preview)
        assert window.save() == seen.preview
        window.until(
            lambda: feedback(environ, "accepted") > before,
            "the host hears of the accept",
        )
        window.press("Control+z")
        window.wait_for_document(seen.document)


def test_typing_along_never_takes_the_ghost_text_away(at):
    with at(LOOP) as window:
        window.type("t")
        seen = window.wait_for_ghost()
        typed = seen.ghost[:16]
        watched = window.type_watched(typed)
        assert watched.frames > len(typed)
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


def test_a_word_and_a_line_are_accepted_the_rest_stays_and_the_host_hears_of_it(at, environ):
    before = feedback(environ, "partly_accepted")
    with at(BODY) as window:
        window.press("Enter")
        seen = window.wait_for_ghost()
        assert "\n" in seen.ghost
        for key in ("Control+ArrowRight", "Control+Alt+ArrowRight"):
            former = window.screen()
            window.press(key)
            window.until(lambda former=former: window.screen().document != former.document, key)
            after = window.wait_for_ghost()
            assert after.preview == seen.preview
            assert len(after.ghost) < len(former.ghost)
        assert seen.ghost.partition("\n")[0] in after.document
        assert (
            window.save().rstrip() == after.document.rstrip()
        )  # the caret is at a line of its own
        window.until(
            lambda: feedback(environ, "partly_accepted") > before, "the host hears of the word"
        )


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


def test_line_ends_of_windows_and_signs_beyond_the_basic_plane_stay_whole(at):
    with at(LOOP) as window:
        text = BODY.text.replace("shop's", "\U0001f600 shop's").replace("\n", "\r\n")
        (window.folder / "windows.py").write_bytes(text.encode())
        window.open("windows.py")
        window.go_to(BODY.line, BODY.column)
        window.type("  # \U0001f600")
        window.press("Enter")
        seen = window.wait_for_ghost()
        window.press("Tab")
        window.wait_for_document(seen.preview)
        window.save()
        written = (window.folder / "windows.py").read_bytes().decode()
        assert written == seen.preview.replace("\n", "\r\n")


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


def test_ghost_text_and_the_menu_of_words_live_together(code, tmp_path):
    settings = {**SETTINGS, "editor.quickSuggestions": {"other": "on"}}
    with code.window(tmp_path, settings) as window:
        window.wait_until_ready()
        window.open_at(LOOP)
        window.type("tot")
        window.page.wait_for_selector(".suggest-widget.visible .monaco-list-row")
        seen = window.wait_for_ghost()
        assert seen.preview.startswith(LOOP.text.partition("        \n")[0] + "        tot")
