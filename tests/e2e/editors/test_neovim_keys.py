"""Keys, columns, menus and neighbours: real Neovim with a server that says exactly what to show."""

import pytest

from tests.support.neovim import ALL_WAYS
from tests.support.polling import until
from tests.support.scripted_server import ScriptedServer

pytestmark = pytest.mark.parametrize("start_neovim", ALL_WAYS, indirect=True, ids="-".join)

LINE = "print(größe, 𝄞, total)"
TABS = "vim.g.python_recommended_style = 0\n"  # <Tab> is a tab


@pytest.fixture
def start(scripted_neovim, script):
    def started(text="", *, before="", options=None, **how):
        editor = scripted_neovim(
            text, before=TABS + before, options=options, **{"line": LINE} | how
        )
        until(lambda: script.heard("textDocument/didOpen"), "the server")
        return editor

    return started


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-32"])
def test_columns_are_right_beyond_ascii_and_the_server_hears_of_an_accept(start, script, encoding):
    editor = start(encoding=encoding)
    for typed in ("iprint(größe", ", 𝄞,"):
        editor.type(typed)
    rest = LINE.removeprefix("print(größe, 𝄞,")
    editor.until(lambda: editor.ghost() == rest, "the ghost text")
    editor.type("<Tab>")
    editor.until_text(LINE)
    command = until(lambda: script.heard("workspace/executeCommand"), "the command")
    assert command == [{"command": "scripted.accept", "arguments": ["one"]}]


def test_a_closing_bracket_after_the_cursor_is_neither_drawn_nor_written_twice(start):
    editor = start(") + 1", covered=1)
    editor.type("Iprint(")
    editor.until_ghost()
    assert editor.text() == "print() + 1"
    editor.type("gr")  # typed along: the bracket moves
    editor.type("<Tab>")
    editor.until_text(LINE + " + 1")


def test_accepting_by_word_keeps_the_covered_bracket_for_the_last_one(start):
    editor = start(")", covered=1)
    editor.type("Iprint(")
    editor.until_ghost()
    while (before := editor.text()) != LINE:
        editor.type("<C-Right>")
        editor.until(lambda before=before: editor.text() != before, "a word")


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
    editor = start(options={"keymaps": {"accept": False, "dismiss": "<C-e>"}})
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


def test_a_buffer_that_is_closed_while_an_answer_is_awaited_does_no_harm(start):
    editor = start()
    editor.type("ipri<Esc>:bwipeout!<CR>ipri<Esc>")
    editor.until(lambda: editor.text() == "pri", "the empty buffer")
    assert not editor.said()


def test_undo_takes_back_what_was_accepted_alone_and_what_was_typed_next(start):
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
    (tmp_path / "other").mkdir()
    other = ScriptedServer(tmp_path / "other")
    other.behaves(line="print(other)", name="other")
    command = [*other.command, "lsp"]
    editor.lua("vim.lsp.start({ name = 'other', cmd = ... }, { bufnr = 0 })", command)
    editor.until(lambda: editor.lua("return #vim.lsp.get_clients()") == 2, "the other server")
    editor.type("ipri")
    editor.until(lambda: editor.ghost() == LINE[3:], "our ghost text")
    editor.type("<Tab>")
    editor.until_text(LINE)
    assert not other.heard("textDocument/inlineCompletion")
    editor.type("<Esc>:checkhealth foregram<CR>")
    editor.until(lambda: "the server `other` offers inline completion too" in editor.text(), "it")
