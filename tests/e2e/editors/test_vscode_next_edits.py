"""Next edits in the real VS Code workbench, from a scripted server."""

from pathlib import Path
from tempfile import mkdtemp

import pytest

from engine.request import EditOutcome
from tests.support.edit_engine import EditEngine, served_edits
from tests.support.editor_home import COMMAND
from tests.support.vscode import scripted_window
from tests.support.vscode_screen import NextEdit, read_next_edit

SHOP = "price = 1\ncount = 2\ntotal = price * count\n" + 40 * "\n" + "print(price)\n"
METHOD = "textDocument/copilotInlineEdit"
SUGGESTION = "textDocument/inlineCompletion"
LAST = 43  # the line of `print`, from 0
NOTHING = NextEdit()
IGNORE = "github.copilot.didIgnoreNextEditSuggestionItem"
REJECT = "github.copilot.didRejectNextEditSuggestionItem"


@pytest.fixture
def window(code, script):
    script.status("Tiny on cpu", model="Tiny")
    with scripted_window(code, script) as opened:
        (opened.folder / "shop.py").write_text(SHOP)
        opened.open("shop.py")
        opened.until(lambda: script.heard("textDocument/didOpen"), "the document")
        yield opened


def edit(line, start, end, text, **more):
    where = {
        "start": {"line": line, "character": start},
        "end": {"line": line, "character": end},
    }
    command = {"title": "", "command": "scripted.accept", "arguments": ["seven"]}
    return {"edits": [{"text": text, "range": where, "command": command, **more}]}


def marks(window):
    return read_next_edit(window.page)


def wait_for_marks(window, wanted):
    window.until(lambda: marks(window) == wanted, lambda: f"{wanted}; there is {marks(window)}")


def ran(script):
    found = script.heard("workspace/executeCommand")
    return [one["command"] for one in found if one.get("arguments") == ["seven"]]


def show_edit(script, window):
    """Type in the first line, and wait for the marks of an edit of the third."""
    script.answers(METHOD, edit(2, 0, 21, "total = cost * count"))
    window.go_to(1, 1)
    window.type("# ")
    wait_for_marks(window, NextEdit(("price",), ("cost",)))


def wait_for_request(script, window, number):
    window.until(lambda: len(script.heard(METHOD)) >= number, f"request {number}")


def test_tab_applies_an_edit_nearby_in_one_step_to_undo_and_asks_what_follows(script, window):
    show_edit(script, window)
    typed = window.screen().document
    (request,) = script.heard(METHOD)
    assert request["textDocument"]["version"] == 3
    assert request["position"] == {"line": 0, "character": 2}
    script.answers(METHOD, {"edits": []})
    window.press("Tab")
    window.until(lambda: "total = cost" in window.screen().document, "the edit")
    wait_for_marks(window, NOTHING)
    wait_for_request(script, window, 2)
    assert ran(script) == ["scripted.accept"]
    assert len(script.heard("textDocument/didShowInlineEdit")) == 1
    window.press("Control+z")
    window.wait_for_document(typed)


def test_tab_goes_to_an_edit_farther_away_and_then_applies_it(script, window):
    script.answers(METHOD, edit(LAST, 6, 11, "cost"))
    window.go_to(1, 1)
    window.type("# ")
    wait_for_marks(window, NextEdit((), (f"Tab: line {LAST + 1}",)))
    window.press("Tab")
    window.until(lambda: f"Ln {LAST + 1}, Col 7" in window.status_bar(), "the caret at the edit")
    wait_for_marks(window, NextEdit(("price",), ("cost",)))
    assert not ran(script)
    script.answers(METHOD, {"edits": []})
    window.press("Tab")
    window.until(lambda: "print(cost)" in window.screen().document, "the edit")
    assert "print(cost)" in window.save()


def test_in_hint_mode_an_edit_is_drawn_where_the_cursor_is_at_it(script, window):
    script.answers(METHOD, {**edit(5, 0, 0, "# the sum\n"), "isHint": True})
    window.go_to(1, 1)
    window.type("# ")
    wait_for_marks(window, NextEdit((), ("Tab: line 6",)))
    window.press("Tab")
    wait_for_marks(window, NextEdit((), ("+ # the sum",)))


def test_the_file_of_the_server_turns_edits_into_hints(code, shop):
    home = Path(mkdtemp(dir=shop.parent))
    (home / "foregram.toml").write_text('next_edits = "hint"\n')
    (shop / "shop.py").write_text("size = 1\n\n\n\n\nprint(size)\n")
    environ = {"FOREGRAM_RUNTIME": f"{home}/run", "FOREGRAM_CONFIG": f"{home}/foregram.toml"}
    given = [f"{name}={value}" for name, value in environ.items()]
    ours = {"foregram.server.command": ["env", *given, str(COMMAND)]}
    renames = EditOutcome(5, 6, ("print(width)",), probability=0.9)
    engine = EditEngine(renames, words=())  # a suggestion would come first
    with served_edits(engine, environ), code.window(shop, ours) as window:
        window.open("shop.py")
        window.wait_until_ready()
        window.go_to(1, 1)
        window.press("Control+Shift+ArrowRight")
        window.type("width")
        wait_for_marks(window, NextEdit((), ("Tab: line 6",)))


def test_escape_dismisses_an_edit_until_something_changes(script, window):
    show_edit(script, window)
    window.press("Escape")
    wait_for_marks(window, NOTHING)
    window.until(lambda: ran(script) == [REJECT], "the refusal")
    window.go_to(2, 1)
    window.press("Tab")
    window.until(lambda: "    count = 2" in window.screen().document, "an indented line")
    wait_for_marks(window, NextEdit(("price",), ("cost",)))
    assert len(script.heard(METHOD)) == 2


def test_an_edit_of_another_version_is_not_shown_and_tab_indents(script, window):
    other = {"uri": f"file://{window.folder}/shop.py", "version": 1}
    script.answers(METHOD, edit(2, 0, 21, "total = cost * count", textDocument=other))
    window.go_to(1, 1)
    window.type("# ")
    wait_for_request(script, window, 1)
    window.go_to(3, 1)
    window.press("Tab")
    window.until(lambda: "    total = price" in window.screen().document, "an indented line")
    assert marks(window) == NOTHING
    assert not script.heard("textDocument/didShowInlineEdit")


def test_before_the_first_word_of_a_line_tab_indents_beside_an_edit(script, window):
    script.answers(METHOD, edit(LAST + 1, 6, 11, "cost"))
    window.go_to(2, 1)
    window.press("Enter", "ArrowUp")
    wait_for_marks(window, NextEdit((), (f"line {LAST + 2}",)))
    window.press("Tab")
    window.until(lambda: "Ln 2, Col 5" in window.status_bar(), "the caret behind the indentation")


def test_a_text_inserted_at_the_cursor_is_ghost_text_which_stays_while_it_is_typed(script, window):
    script.answers(METHOD, edit(1, 10, 10, " + tax"))
    window.go_to(2, 10)
    window.type("0")
    assert window.wait_for_ghost().ghost == " + tax"
    assert marks(window) == NOTHING
    script.answers(METHOD, {"edits": []})
    assert window.type_watched(" +").gaps == 0
    window.press("Tab")
    window.until(lambda: "count = 20 + tax\n" in window.screen().document, "the insertion")
    window.until(lambda: ran(script) == ["scripted.accept"], "the accept")


def test_nothing_is_asked_for_while_a_text_is_selected(script, window):
    script.answers(METHOD, edit(2, 0, 21, "total = cost * count"))
    window.go_to(4, 1)
    window.type("# ")
    window.press("Shift+ArrowUp")
    window.until(lambda: "selected" in window.status_bar(), "a selection")
    window.go_to(5, 1)
    window.type("#")
    wait_for_marks(window, NextEdit(("price",), ("cost",)))
    # On a quick machine the pause after the first key ends here, where nothing is selected.
    assert {one["position"]["line"] for one in script.heard(METHOD)} == {4}


@pytest.mark.parametrize("keys", [["Shift+ArrowRight"], ["Shift+Alt+ArrowDown"]], ids="-".join)
def test_an_edit_leaves_where_text_is_selected_or_there_are_several_cursors(script, window, keys):
    show_edit(script, window)
    window.press(*keys)
    wait_for_marks(window, NOTHING)
    window.until(lambda: ran(script) == [IGNORE], "the server knows")
    assert "total = price * count" in window.screen().document


def test_tab_belongs_to_the_list_of_words_while_that_is_open(script, window):
    script.answers(METHOD, edit(2, 0, 21, "total = cost * count"))
    window.go_to(4, 1)
    window.type("cou")
    wait_for_marks(window, NextEdit(("price",), ("cost",)))
    window.press("Control+Space")
    window.page.wait_for_selector(".suggest-widget.visible .monaco-list-row.focused")
    window.press("Tab")
    window.until(lambda: "\ncount\n" in window.screen().document, "the word")
    assert "total = price * count" in window.screen().document


def test_an_edit_that_deletes_lines_of_a_text_with_wide_characters_and_crlf(script, window):
    text = "a = '\U0001f600\u4e2d'\r\nb = 2\r\n\r\nc = '\U0001f600' + b\r\nd = 4\r\n"
    (window.folder / "wide.py").write_bytes(text.encode())
    window.open("wide.py")
    where = {"start": {"line": 1, "character": 0}, "end": {"line": 3, "character": 12}}
    script.answers(METHOD, {"edits": [{"text": "c = '\U0001f601' + 2", "range": where}]})
    window.go_to(1, 1)
    window.press("End")
    window.type(" ")
    window.until(lambda: marks(window).texts == ("\U0001f601' + 2",), lambda: marks(window))
    assert "".join(marks(window).struck) == "b = 2\U0001f600' + b"  # VS Code draws it in pieces
    script.answers(METHOD, {"edits": []})
    window.press("Tab")
    window.until(lambda: "b = 2" not in window.screen().document, "the edit")
    window.save()
    saved = (window.folder / "wide.py").read_bytes().decode()
    assert saved == "a = '\U0001f600\u4e2d' \r\nc = '\U0001f601' + 2\r\nd = 4\r\n"


def test_an_edit_that_comes_after_a_further_key_is_not_shown(script, window):
    script.holds(METHOD)
    window.go_to(1, 1)
    window.type("# ")
    wait_for_request(script, window, 1)
    window.type("x")
    wait_for_request(script, window, 2)
    first, last = (one["textDocument"] for one in script.heard(METHOD))
    assert first["version"] < last["version"]
    script.answers(METHOD, edit(2, 0, 21, "total = cost * count", textDocument=last))
    wait_for_marks(window, NextEdit(("price",), ("cost",)))
    window.until(lambda: script.heard("textDocument/didShowInlineEdit"), "the server knows")
    assert len(script.heard("textDocument/didShowInlineEdit")) == 1


def test_escape_dismisses_a_text_at_the_cursor_and_the_server_knows(script, window):
    script.answers(METHOD, edit(1, 10, 10, " + tax"))
    window.go_to(2, 10)
    window.type("0")
    assert window.wait_for_ghost().ghost == " + tax"
    window.press("Escape")
    window.until(lambda: not window.ghost(), "no ghost text")
    window.until(lambda: ran(script) == [REJECT], "the refusal")


@pytest.mark.parametrize("key", ["ArrowUp", "Shift+ArrowLeft", "x"])
def test_a_text_at_the_cursor_that_is_left_is_no_more_to_dismiss(script, window, key):
    script.answers(METHOD, edit(1, 10, 10, " + tax"))
    window.go_to(2, 10)
    window.type("0")
    assert window.wait_for_ghost().ghost == " + tax"
    script.answers(METHOD, {"edits": []})
    window.press(key)
    window.until(lambda: ran(script) == [IGNORE], "the server knows")
    script.answers(SUGGESTION, {"items": [{"insertText": "# so"}]})
    window.press("End")
    window.type(" ")
    assert window.wait_for_ghost().ghost == "# so"
    window.press("Escape")
    window.until(lambda: not window.ghost(), "no ghost text")
    assert ran(script) == [IGNORE]


def test_an_edit_gives_way_to_a_suggestion_that_comes_later(script, window):
    script.holds(SUGGESTION)
    script.answers(METHOD, edit(2, 0, 21, "total = cost * count"))
    window.go_to(1, 1)
    window.press("End")
    window.type(" ")
    wait_for_marks(window, NextEdit(("price",), ("cost",)))
    script.answers(SUGGESTION, {"items": [{"insertText": "# so"}]})
    assert window.wait_for_ghost().ghost == "# so"
    wait_for_marks(window, NOTHING)
    window.until(lambda: ran(script) == [IGNORE], "the server knows")


def test_an_edit_that_cannot_be_made_is_told_of(script, window):
    show_edit(script, window)
    window.command("File: Set Active Editor Read-only in Session")
    window.command("foregram: Go to the Next Edit, or Apply It")
    window.wait_for_message("the edit was not made")
    wait_for_marks(window, NOTHING)
    window.until(lambda: ran(script) == [IGNORE], "the server knows")


def test_trouble_that_an_edit_has_caused_is_a_reason_to_ask_and_is_told(script, window):
    (window.folder / "shop.json").write_text('{"price": 1}\n')
    window.open("shop.json")
    window.go_to(1, 12)
    window.type(",")
    window.until(
        lambda: any(one["diagnostics"] for one in script.heard(METHOD)), "a request with trouble"
    )
    (told, *_) = script.heard(METHOD)[-1]["diagnostics"]
    assert told["range"]["start"]["line"] == 0
    assert told["message"]
