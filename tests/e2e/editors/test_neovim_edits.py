"""Edits asked for in words in real Neovim: shown in place, made or discarded."""

import pytest

from engine.request import EditOutcome
from tests.support.edit_engine import EditEngine, served_edits
from tests.support.editor_home import feedback
from tests.support.neovim import WAYS
from tests.support.polling import until
from tests.support.shown_changes import TEXT, edit, shown, until_said, until_shown, version

EDIT = "foregram.edit"
VERSIONS = pytest.mark.parametrize("start_neovim", WAYS, indirect=True, ids="-".join)


@pytest.fixture
def start(scripted_neovim, script):
    def started(text=TEXT, **given):
        editor = scripted_neovim(text, **given)
        until(lambda: script.heard("textDocument/didOpen"), "the server")
        return editor

    return started


def ask(editor, script, *edits, words="rename it"):
    script.answers(EDIT, {"version": version(editor), "edits": edits})
    editor.type(f":Foregram edit {words}<CR>")


@VERSIONS
def test_an_asked_edit_is_shown_in_place_and_accepted_as_one_undo_step(start, script):
    editor = start()
    script.answers(EDIT, {"version": version(editor), "edits": [
        edit((0, 4), (0, 8), "size"), edit((2, 0), (4, 16), "\n# so\nx = (\n    size"),
    ]})  # fmt: skip
    editor.type(":1,5Foregram edit  rename it, please<CR>")
    inserted = "+# so\n", "+x = (\n", "+    size(2, 3))\n"
    until_shown(editor, "-area", "+size", "-\n", "-print('𝄞', area(2, 3))", *inserted)
    [asked] = script.heard("workspace/executeCommand")
    [argument] = asked["arguments"]
    assert argument["range"] == edit((0, 0), (4, 23), "")["range"]
    assert (argument["instruction"], argument["preview"]) == ("rename it, please", True)
    assert argument["version"] == version(editor)
    assert editor.text() == TEXT.rstrip("\n")
    editor.type("<Tab>")
    after = "def size(w, h):\n    return w * h\n\n# so\nx = (\n    size(2, 3))"
    editor.until_text(after)
    assert shown(editor) == []
    editor.type("u")
    editor.until_text(TEXT.rstrip("\n"))


@VERSIONS
@pytest.mark.parametrize("way", ["<Esc>", ":Foregram dismiss<CR>"])
def test_an_asked_edit_that_is_discarded_leaves_nothing_behind(start, script, way):
    editor = start(before="vim.keymap.set('n', '<Esc>', function() _G.was_called = true end)")
    ask(editor, script, edit((0, 4), (0, 8), "size"))
    until_shown(editor, "-area", "+size")
    editor.type(way)
    until_said(editor, "the edit is discarded")
    assert shown(editor) == []
    editor.type("<Esc>:Foregram accept<CR>")
    editor.until(lambda: editor.lua("return _G.was_called"), "the user's own key")
    assert editor.text() == TEXT.rstrip("\n")


def test_an_edit_of_an_older_text_is_not_shown(start, script):
    editor = start()
    script.holds(EDIT)
    editor.type(":Foregram edit rename it<CR>")
    until(lambda: script.heard("workspace/executeCommand"), "the question")
    assert shown(editor) == [">  editing …"]
    former = version(editor)
    editor.type("Gochanged<Esc>")
    editor.until(lambda: version(editor) != former, "the change")
    script.answers(EDIT, {"version": former, "edits": [edit((0, 4), (0, 8), "size")]})
    until_said(editor, "the buffer has changed meanwhile")
    assert shown(editor) == []


def test_a_buffer_that_changes_while_an_edit_is_shown_discards_it(start, script):
    editor = start()
    ask(editor, script, edit((0, 4), (0, 8), "size"))
    until_shown(editor, "-area", "+size")
    editor.type("ggdd")
    until_said(editor, "the edit is discarded")
    text = editor.text()
    editor.type(":Foregram accept<CR><Tab>")
    until_said(editor, "the edit is discarded")
    assert (editor.text(), shown(editor)) == (text, [])


def test_a_buffer_that_changes_without_the_server_discards_the_edit(start, script):
    editor = start()
    ask(editor, script, edit((4, 12), (4, 16), "size"))
    until_shown(editor, "-area", "+size")
    editor.lua("vim.lsp.buf_detach_client(0, vim.lsp.get_clients()[1].id)")
    editor.type("ggyyp<Tab>")
    until_said(editor, "the edit is discarded")
    assert editor.text() == (TEXT[:15] + "\n" + TEXT).rstrip("\n")


def test_saving_keeps_the_edit_that_is_shown(start, script):
    editor = start()
    ask(editor, script, edit((0, 4), (0, 8), "size"))
    until_shown(editor, "-area", "+size")
    editor.type(":write<CR>:Foregram accept<CR>")
    editor.until(lambda: editor.text().startswith("def size("), "the change")


def test_how_far_an_edit_is_stands_at_its_line_and_dismissing_cancels_it(start, script):
    editor = start()
    script.holds(EDIT)
    editor.type(":5Foregram edit rename it<CR>")
    asked = until(lambda: script.heard("workspace/executeCommand"), "the question")
    token = asked[0]["arguments"][0]["workDoneToken"]
    value = {"kind": "report", "percentage": 40}
    script.says("$/progress", token=token, value=value)
    editor.until(lambda: shown(editor) == [">  editing … 40 %"], "the progress")
    editor.type(":Foregram dismiss<CR>")
    until(lambda: script.heard("$/cancelRequest"), "the end of it")
    assert shown(editor) == []


def test_why_there_is_no_edit_is_said_in_the_words_of_the_server(start, script):
    editor = start()
    script.refuses(EDIT, "the model would change nothing")
    editor.type(":Foregram edit rename it<CR>")
    until_said(editor, "the model would change nothing")
    assert shown(editor) == []


def test_the_second_of_two_questions_about_a_buffer_is_the_one_that_is_answered(start, script):
    editor = start()
    script.holds(EDIT)
    editor.type(":1Foregram edit one<CR>")
    until(lambda: script.heard("workspace/executeCommand"), "the question")
    editor.type(":5Foregram edit two<CR>")
    until(lambda: len(script.heard("workspace/executeCommand")) == 2, "the other question")
    script.answers(EDIT, {"version": version(editor), "edits": [edit((4, 12), (4, 16), "size")]})
    until_shown(editor, "-area", "+size")
    editor.type("<Tab>")
    editor.until_text(TEXT.replace("area(2", "size(2").rstrip("\n"))
    assert shown(editor) == []
    assert not editor.said()


def test_two_buffers_wait_for_an_edit_each(start, script, tmp_path):
    other = tmp_path / "b.py"
    other.write_text("x = 1\n")
    editor = start()
    script.holds(EDIT)
    editor.type(":Foregram edit one<CR>")
    until(lambda: script.heard("workspace/executeCommand"), "the question")
    editor.type(f":split {other}<CR>")
    until(lambda: len(script.heard("textDocument/didOpen")) == 2, "the file")
    editor.type(":Foregram edit two<CR>")
    until(lambda: len(script.heard("workspace/executeCommand")) == 2, "the other question")
    answered = {"version": version(editor), "edits": [edit((0, 0), (0, 1), "y")]}
    script.answers(EDIT, answered)
    until_shown(editor, "-x", "+y")
    editor.type("<Tab>")
    editor.until_text("y = 1")
    editor.type("<C-w>p")
    until_shown(editor, "-d", "+y")


def test_a_file_that_ends_without_a_newline_stays_so(start, script, tmp_path):
    file = tmp_path / "b.py"
    file.write_text("if x:\n\ty = 1")
    editor = start(before="vim.o.fixendofline = false")
    editor.type(f":edit {file} | set tabstop=4<CR>")
    until(lambda: len(script.heard("textDocument/didOpen")) == 2, "the file")
    ask(editor, script, edit((1, 1), (1, 6), "\tz = 1\n\ty = z"))
    until_shown(editor, "-\ty = 1", f"+{8 * ' '}z = 1\n", f"+{4 * ' '}y = z\n")
    editor.type("<Tab>:write<CR>")
    until(lambda: file.read_text() == "if x:\n\t\tz = 1\n\ty = z", "the file")


def test_a_buffer_that_cannot_be_changed_is_not_edited(start, script):
    editor = start()
    editor.type(":set nomodifiable<CR>:Foregram edit rename it<CR>")
    until_said(editor, "the buffer cannot be changed")
    assert not script.heard("workspace/executeCommand")


def test_without_keys_for_it_an_edit_names_the_commands(start, script):
    editor = start(options={"keymaps": False})
    ask(editor, script, edit((0, 4), (0, 8), "size"))
    until_shown(editor, "-area", "+size")
    assert ">  :Foregram accept accepts, :Foregram dismiss discards" in shown(editor)
    editor.type("<Esc>:Foregram accept<CR>")
    editor.until(lambda: editor.text().startswith("def size("), "the change")


def test_without_words_they_are_asked_for(start, script):
    editor = start(
        before="vim.ui.input = function(how, use) _G.prompt = how.prompt use('rename') end"
    )
    ask(editor, script, edit((0, 4), (0, 8), "size"), words="")
    until_shown(editor, "-area", "+size")
    assert editor.lua("return _G.prompt") == "Edit: "
    [asked] = script.heard("workspace/executeCommand")
    assert asked["arguments"][0]["instruction"] == "rename"


PROMPT = "vim.ui.input = function(_, use) _G.answer = use end"


def test_a_buffer_that_changes_while_the_words_are_asked_for_is_not_edited(start, script):
    editor = start(before=PROMPT)
    editor.type(":5Foregram edit<CR>ggdd")
    editor.lua("_G.answer('rename')")
    until_said(editor, "the buffer has changed meanwhile")
    assert not script.heard("workspace/executeCommand")
    assert shown(editor) == []


def test_a_server_that_ends_while_the_words_are_asked_for_is_told_of(start, script):
    editor = start(before=PROMPT)
    editor.type(":5Foregram edit<CR>:Foregram restart<CR>")
    until(lambda: len(script.heard("textDocument/didOpen")) == 2, "the file")
    editor.lua("_G.answer('rename')")
    until_said(editor, "the server has ended meanwhile: ask again")
    assert shown(editor) == []


def test_what_cannot_be_sent_is_not_waited_for(start):
    editor = start()
    editor.lua("vim.lsp.get_clients()[1].request = function() return false end")
    editor.type(":5Foregram edit rename it<CR>")
    until_said(editor, "the server has ended meanwhile: ask again")
    assert shown(editor) == []
    editor.lua("_G.buf = vim.api.nvim_get_current_buf()")
    assert not editor.lua("return require('foregram.asked_edit').is_waiting(_G.buf)")


@VERSIONS
def test_lines_that_hold_nul_are_edited(start, script, tmp_path):
    file = tmp_path / "b.py"
    file.write_bytes(b"x = '\x00', 1\ny = '\x00'\n")
    editor = start()
    editor.type(f":edit {file}<CR>")
    until(lambda: len(script.heard("textDocument/didOpen")) == 2, "the file")
    ask(editor, script, edit((0, 9), (0, 10), "2"), edit((1, 5), (1, 6), "\0\nz\0"))
    editor.until(lambda: any(one.startswith("-") for one in shown(editor)), "the change")
    editor.type("<Tab>:write<CR>")
    after = b"x = '\x00', 2\ny = '\x00\nz\x00'\n"
    until(lambda: file.read_bytes() == after, "the file")


@VERSIONS
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_columns_beyond_ascii_and_line_ends_are_right(start, script, newline, tmp_path):
    file = tmp_path / "b.py"
    file.write_bytes(TEXT.replace("\n", newline).encode())
    editor = start()
    editor.type(f":edit {file}<CR>")
    until(lambda: len(script.heard("textDocument/didOpen")) == 2, "the file")
    ask(
        editor,
        script,
        edit((0, 4), (0, 8), "größe"),
        edit((4, 12), (4, 16), "größe"),
        edit((5, 0), (5, 0), f"print('👍'){newline}{newline}x = 1{newline}"),
    )
    lines = "print('𝄞', größe(2, 3))", "print('👍')", " ", "x = 1"
    inserted = [f"+{line}\n" for line in lines]
    until_shown(editor, "-area", "+größe", "-print('𝄞', area(2, 3))", *inserted)
    editor.type("<Tab>:write<CR>")
    after = TEXT.replace("area", "größe") + "print('👍')\n\nx = 1\n"
    until(lambda: file.read_bytes().decode() == after.replace("\n", newline), "the file")


def test_lines_above_the_first_one_are_seen(start, script):
    editor = start()
    ask(editor, script, edit((0, 0), (0, 0), "import math\n"))
    until_shown(editor, "+import math\n")
    seen = "return vim.fn.winsaveview().topfill"
    assert editor.lua(seen) == 1
    editor.type("<Tab>")
    editor.until_text("import math\n" + TEXT.rstrip("\n"))


def test_a_range_is_for_edits_alone(start):
    editor = start()
    editor.type(":1,2Foregram why<CR>")
    until_said(editor, "`:Foregram why` takes no range")


def test_a_host_that_fails_is_told_of_in_a_sentence(hostless, start_neovim, tmp_path):
    file = tmp_path / "a.py"
    file.write_text(TEXT)
    with served_edits(EditEngine(RuntimeError("out of order")), hostless):
        editor = start_neovim(hostless, file)
        editor.until(lambda: "fake" in editor.state().get("message", ""), "the host", 30)
        editor.type(":1Foregram edit rename it<CR>")
        sentence = editor.until(editor.said, "a sentence")
        assert len(sentence) == 1
        assert sentence[0].startswith("foregram: the completion failed; the log names ")
        assert "\n" not in sentence[0]
        assert shown(editor) == []


def test_with_our_server_an_asked_edit_and_the_next_one_are_made(hostless, start_neovim, tmp_path):
    file = tmp_path / "a.py"
    file.write_text(TEXT)
    renamed = EditOutcome(0, 1, ("def size(w, h):",), probability=0.9)
    mended = EditOutcome(4, 5, ("print('𝄞', size(2, 3))",), probability=0.9)
    engine = EditEngine(renamed, mended, EditOutcome(refusal="no_change"))
    with served_edits(engine, hostless):
        editor = start_neovim(hostless, file)
        editor.until(lambda: "fake" in editor.state().get("message", ""), "the host", 30)
        editor.type(":1Foregram edit rename it<CR>")
        until_shown(editor, "-area", "+size")
        editor.type("<Tab>")
        until_shown(editor, "-area", "+size")  # in the last line
        editor.type("<Tab><Tab>")
        editor.until_text(TEXT.replace("area", "size").rstrip("\n"))
        until(lambda: feedback(hostless, "accepted") == 1, "the host hears of it")
        assert [bool(task.instruction) for task in engine.tasks[:2]] == [True, False]
