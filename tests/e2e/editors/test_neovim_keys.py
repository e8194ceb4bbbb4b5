"""Keys, columns, menus and neighbours: real Neovim with a server that says exactly what to show."""

import json
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.support import neovim_server
from tests.support.editor_home import own_home
from tests.support.neovim import Neovim, neovim, setup_table
from tests.support.polling import until

pytestmark = [pytest.mark.e2e, pytest.mark.editors, pytest.mark.timeout(300)]

LINE = "print(größe, 𝄞, total)"
TABS = "vim.g.python_recommended_style = 0\n"  # <Tab> is a tab
SCRIPTED = [sys.executable, neovim_server.__file__]


def scripted(**script) -> list[str]:
    """The command of a server that follows a script."""
    return [*SCRIPTED, json.dumps(script)]


@pytest.fixture(params=[("0.11", "auto"), ("0.12", "auto"), ("0.12", "own")], ids="-".join)
def start(request, tmp_path):
    """Starts Neovim with a scripted server, in one version, with one way to draw."""
    version, ghost_text = request.param
    with own_home() as environ, ExitStack() as stack:

        def started(text="", before="", name="a.py", server=None, **script) -> Neovim:
            file = tmp_path / name
            file.write_text(text)
            command = scripted(log=str(tmp_path / "log"), **{"line": LINE} | script)
            options = {"cmd": command, "ghost_text": ghost_text} | (server or {})
            run = neovim(
                version, environ, tmp_path / "xdg", file,
                setup=setup_table(options), before=TABS + before,
            )  # fmt: skip
            editor = stack.enter_context(run)
            until(lambda: heard(tmp_path, "textDocument/didOpen"), "the server")
            return editor

        yield started


def heard(folder: Path, method: str) -> list[dict[str, Any]]:
    """What the scripted server got by a method."""
    log = folder / "log"
    lines = log.read_text().splitlines() if log.exists() else []
    return [one["params"] for one in map(json.loads, lines) if one["method"] == method]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-32"])
def test_columns_are_right_beyond_ascii(start, encoding):
    editor = start(encoding=encoding)
    for typed in ("print(größe", ", 𝄞,"):
        editor.type("i" + typed if typed.startswith("p") else typed)
    rest = LINE.removeprefix("print(größe, 𝄞,")
    editor.until(lambda: editor.ghost() == rest, "the ghost text")
    editor.type("<Tab>")
    editor.until_text(LINE)


def test_the_server_hears_of_an_accept(start, tmp_path):
    editor = start()
    editor.type("iprint(")
    editor.until_ghost()
    editor.type("<Tab>")
    command = until(lambda: heard(tmp_path, "workspace/executeCommand"), "the command")
    assert command == [{"command": "scripted.accept", "arguments": ["one"]}]


@pytest.mark.parametrize(("text", "after"), [(")", ""), (") + 1", " + 1")])
def test_a_closing_bracket_after_the_cursor_is_neither_drawn_nor_written_twice(start, text, after):
    editor = start(text, covered=1)
    editor.type("Iprint(")
    editor.until_ghost()
    assert editor.text() == "print(" + text
    editor.type("gr")  # typed along: the bracket moves
    editor.type("<Tab>")
    editor.until_text(LINE + after)


def test_accepting_by_word_keeps_the_covered_bracket_for_the_last_one(start):
    editor = start(")", covered=1)
    editor.type("Iprint(")
    editor.until_ghost()
    for _ in range(9):
        before = editor.text()
        editor.type("<C-Right>")
        editor.until(lambda before=before: editor.text() != before, "a word")
        if editor.text() == LINE:
            break
    assert editor.text() == LINE


def test_a_word_of_any_script_ends_where_vims_own_does(start):
    line = "x = '日本語、テスト「引用」です【注】《書》 été👍ok'"
    editor = start(line=line)
    editor.type("ix = '")
    editor.until_ghost()
    words = []
    while (before := editor.text()) != line:
        editor.type("<C-Right>")
        editor.until(lambda before=before: editor.text() != before, "a word")
        words.append(editor.text().removeprefix(before))
    found = "日本語|、|テスト|「|引用|」|です|【|注|】《|書|》| été|👍|ok|'"
    assert "|".join(words) == found


def test_backspace_brings_back_what_was_typed_along(start):
    editor = start()
    editor.type("iprint(")
    ghost = editor.until_ghost()
    editor.type("grö<BS><BS>")
    editor.until(lambda: editor.view() == ("print(g", ghost[1:]), "the ghost text")


def test_keys_do_what_they_did_where_there_is_nothing_to_accept(start):
    editor = start(
        "one two",
        before="""
        vim.keymap.set("i", "<C-Down>", function() _G.was_called = true end)
        vim.keymap.set("i", "<C-]>", "closed")
        vim.keymap.set("i", "<M-]>", "'ex' .. 'pr'", { expr = true })
        """,
    )
    editor.type("I<C-Right>x<C-Down><C-]><M-]><Tab>y")
    editor.until_text("one xclosedexpr\tytwo")
    assert editor.lua("return _G.was_called")


def test_keys_that_are_false_are_left_alone(start):
    editor = start(server={"keymaps": {"accept": False, "dismiss": "<C-e>"}})
    editor.type("iprint(")
    editor.until_ghost()
    editor.type("<C-e>")
    editor.until_no_ghost()
    editor.type("<Tab>")
    editor.until_text("print(\t")


def test_functions_serve_mappings_of_ones_own(start):
    editor = start(
        before="""
        vim.keymap.set("i", "<C-l>", function()
          _G.accepted = require("foregram").accept()
        end)
        """
    )
    editor.type("ipr")
    editor.until_ghost()
    editor.type("<C-l>")
    editor.until_text(LINE)
    assert editor.lua("return _G.accepted") is True
    editor.type("<C-l>x")
    editor.until_text(LINE + "x")
    assert editor.lua("return _G.accepted") is False


def test_an_entry_chosen_in_the_menu_keeps_its_keys(start):
    editor = start("prune prism\n")
    editor.type("Gopr")
    editor.until_ghost()
    editor.type("<C-n>")
    editor.until(lambda: editor.lua("return vim.fn.pumvisible()") == 1, "the menu")
    editor.type("<Tab>x")
    editor.until(lambda: editor.text().endswith("x"), "the key")
    assert editor.text().split("\n")[-1] in ("prune\tx", "prism\tx")


def test_leaving_insert_mode_takes_the_ghost_text_away(start):
    editor = start()
    editor.type("ipri")
    editor.until_ghost()
    editor.type("<Esc>")
    editor.until_no_ghost()


def test_a_buffer_that_is_closed_while_an_answer_is_awaited_does_no_harm(start, tmp_path):
    editor = start()
    editor.type("ipri<Esc>:bwipeout!<CR>ipri<Esc>")
    editor.until(lambda: editor.text() == "pri", "the empty buffer")
    assert not editor.said()


def test_undo_takes_back_what_was_accepted_alone_and_dot_repeats_what_was_typed(start):
    editor = start()
    editor.type("ipri")
    editor.until_ghost()
    editor.type("<Tab><Esc>u")
    editor.until_text("pri")
    editor.type("<C-r>")
    editor.until_text(LINE)
    editor.type("uu")
    editor.until_text("")


def test_another_server_with_inline_completion_stays_out_of_the_way(start, tmp_path):
    editor = start()
    other = scripted(line="print(other)", log=str(tmp_path / "other"), name="other")
    editor.lua("vim.lsp.start({ name = 'other', cmd = ... }, { bufnr = 0 })", other)
    editor.until(lambda: editor.lua("return #vim.lsp.get_clients()") == 2, "the other server")
    editor.type("ipri")
    editor.until(lambda: editor.ghost() == LINE[3:], "our ghost text")
    editor.type("<Tab>")
    editor.until_text(LINE)
    assert "textDocument/inlineCompletion" not in (tmp_path / "other").read_text()
    editor.type("<Esc>:checkhealth foregram<CR>")
    editor.until(lambda: "the server `other` offers inline completion too" in editor.text(), "it")


def test_what_the_server_is_told_at_the_start(start, tmp_path):
    settings = {"max_tokens": 7, "languages": {}}
    editor = start(server={"settings": settings})
    [told] = heard(tmp_path, "initialize")
    options = told["initializationOptions"]
    assert options["foregram"] == {"max_tokens": 7}
    assert options["editorInfo"]["name"] == "Neovim"
    assert options["editorPluginInfo"] == {"name": "foregram", "version": "0.1.0"}
    assert "inlineCompletion" in told["capabilities"]["textDocument"]
    editor.type(":Foregram toggle<CR>:Foregram disable lua<CR>")
    until(lambda: len(heard(tmp_path, "workspace/didChangeConfiguration")) == 3, "the settings")
    *_, told = heard(tmp_path, "workspace/didChangeConfiguration")
    assert told["settings"]["foregram"] == {
        "max_tokens": 7,
        "enable": False,
        "languages": {"lua": False},
    }


def test_the_command_completes_its_subcommands_and_names_a_wrong_one(start):
    editor = start()
    complete = "return vim.fn.getcompletion(..., 'cmdline')"
    assert editor.lua(complete, "Foregram re") == ["restart"]
    assert editor.lua(complete, "Foregram toggle ") == ["python"]
    assert editor.lua(complete, "Foregram model 1") == ["1.5b", "14b"]
    assert editor.lua(complete, "Foregram why ") == []
    editor.type(":Foregram jump<CR>:Foregram why now<CR>")
    until(lambda: len(editor.said()) == 2, "the messages")
    assert editor.said()[0].startswith("foregram: there is no `:Foregram jump`; there are: accept,")
    assert editor.said()[1] == "foregram: `:Foregram why` takes no argument"


def test_health_says_that_all_is_well(start):
    editor = start()
    editor.type(":checkhealth foregram<CR>")
    editor.until(lambda: "server 0.1.0, positions in utf-8" in editor.text(), "the report")
    assert "ERROR" not in editor.text()
