"""Changes in real Neovim: asked for in words, shown in place, made or discarded."""

import pytest

from engine.request import EditOutcome
from tests.support.edit_engine import EditEngine, served_edits
from tests.support.editor_home import feedback
from tests.support.neovim import WAYS
from tests.support.polling import until

EDIT = "foregram.edit"
TEXT = "def area(w, h):\n    return w * h\n\n\nprint('𝄞', area(2, 3))\n"
VERSIONS = pytest.mark.parametrize("start_neovim", WAYS, indirect=True, ids="-".join)
# What a change shows: marked text, texts beside it, lines below it, and hints, from the top.
SHOWN = """
local found, names = {}, vim.api.nvim_get_namespaces()
for _, name in ipairs({ "foregram.change", "foregram.hint" }) do
  for _, mark in ipairs(vim.api.nvim_buf_get_extmarks(0, names[name], 0, -1, { details = true })) do
    local row, column, how = mark[2], mark[3], mark[4]
    if how.hl_group then
      local last, behind = how.end_row, how.end_col
      if last > vim.api.nvim_buf_line_count(0) - 1 then last, behind = row, -1 end
      local marked = vim.api.nvim_buf_get_text(0, row, column, last, behind, {})
      found[#found + 1] = "-" .. table.concat(marked, "\\n")
    end
    for _, chunk in ipairs(how.virt_text or {}) do
      found[#found + 1] = (name == "foregram.hint" and ">" or "+") .. chunk[1]
    end
    for _, line in ipairs(how.virt_lines or {}) do found[#found + 1] = "+" .. line[1][1] .. "\\n" end
  end
end
return found
"""


def edit(start, end, text):
    """Return an edit from (line, character) to (line, character), as the protocol counts them."""
    names = ("line", "character")
    where = {
        "start": dict(zip(names, start, strict=True)),
        "end": dict(zip(names, end, strict=True)),
    }
    return {"range": where, "newText": text}


@pytest.fixture
def start(scripted_neovim, script):
    def started(text=TEXT, **given):
        editor = scripted_neovim(text, **given)
        until(lambda: script.heard("textDocument/didOpen"), "the server")
        return editor

    return started


def version(editor):
    return editor.lua("return vim.lsp.util.buf_versions[vim.api.nvim_get_current_buf()]")


def shown(editor):
    return editor.lua(SHOWN)


def until_shown(editor, *wanted):
    editor.until(
        lambda: [one for one in shown(editor) if one[0] != ">"] == [*wanted], f"{wanted}", 20
    )


def until_said(editor, words):
    editor.until(lambda: any(words in one for one in editor.said()), words, 20)


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


def test_without_words_they_are_asked_for(start, script):
    editor = start(
        before="vim.ui.input = function(how, use) _G.prompt = how.prompt use('rename') end"
    )
    ask(editor, script, edit((0, 4), (0, 8), "size"), words="")
    until_shown(editor, "-area", "+size")
    assert editor.lua("return _G.prompt") == "Edit: "
    [asked] = script.heard("workspace/executeCommand")
    assert asked["arguments"][0]["instruction"] == "rename"


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


NEXT = "textDocument/copilotInlineEdit"
ACCEPTED = "github.copilot.didAcceptNextEditSuggestionItem"
REJECTED = "github.copilot.didRejectNextEditSuggestionItem"
RENAMED = TEXT.replace("area", "size", 1).rstrip("\n")


@pytest.fixture
def start_proposing(start, script, tmp_path):
    """Neovim with a server that proposes to rename the call, once the function is renamed."""

    def started(*edits, **given):
        uri = (tmp_path / "a.py").as_uri()
        editor = start(commands=[ACCEPTED, REJECTED], **given)
        running = "return require('foregram.client').get() ~= nil"
        editor.until(lambda: editor.lua(running), "the server")
        given = {"uri": uri, "version": editor.lua("return vim.b.changedtick") + 1}
        command = {"title": "", "command": ACCEPTED, "arguments": ["one"]}
        script.answers(NEXT, {"edits": [
            {"range": one["range"], "text": one["newText"], "textDocument": given, "command": command}
            for one in edits or [edit((4, 12), (4, 16), "size")]
        ]})  # fmt: skip
        editor.lua(
            "_G.rename = function() vim.api.nvim_buf_set_text(0, 0, 4, 0, 8, { 'size' }) end"
        )
        return editor

    return started


def rename(editor):
    editor.lua("_G.rename()")


def commands(script):
    return [(one["command"], one["arguments"]) for one in script.heard("workspace/executeCommand")]


@VERSIONS
def test_the_next_edit_is_jumped_to_then_made_as_one_undo_step(start_proposing, script):
    editor = start_proposing()
    rename(editor)
    until_shown(editor, "-area", "+size")
    assert ">  <Tab>: line 5" in shown(editor)
    [asked] = script.heard(NEXT)
    assert asked["textDocument"]["version"] == version(editor)
    assert asked["context"] == {"triggerKind": 2}
    until(lambda: script.heard("textDocument/didShowInlineEdit"), "the notice")
    script.answers(NEXT, {"edits": []})
    editor.type("<Tab>")
    editor.until(lambda: editor.lua("return vim.api.nvim_win_get_cursor(0)") == [5, 14], "the jump")
    assert editor.text() == RENAMED
    assert shown(editor) == ["-area", "+size"]
    editor.type("<Tab>")
    editor.until_text(RENAMED.replace("area(2", "size(2"))
    until(lambda: commands(script) == [(ACCEPTED, ["one"])], "the accept")
    until(lambda: len(script.heard(NEXT)) == 2, "the next question")
    editor.type("u")
    editor.until_text(RENAMED)


def test_in_insert_mode_the_same_key_makes_it_and_typing_goes_on(start_proposing, script):
    editor = start_proposing(edit((1, 4), (1, 10), "yield"))
    editor.type("A")
    rename(editor)
    until_shown(editor, "-return", "+yield")
    editor.type("<Tab>!<Esc>")
    after = RENAMED.replace("return", "yield!")
    editor.until_text(after)
    editor.type("u")
    editor.until_text(RENAMED.replace("return", "yield"))
    editor.type("u")
    editor.until_text(RENAMED)


@pytest.mark.parametrize("mode", ["", "A"])
def test_what_was_dismissed_stays_dismissed_until_something_changes(start_proposing, script, mode):
    editor = start_proposing()
    editor.type(mode)
    rename(editor)
    until_shown(editor, "-area", "+size")
    editor.type("<C-]>" if mode else "<Esc>")
    editor.until(lambda: shown(editor) == [], "nothing")
    until(lambda: commands(script) == [(REJECTED, ["one"])], "the reject")
    editor.type("<Esc>a<Esc>jk:w<CR>A<Esc>")
    editor.lua("vim.wait(700)")  # longer than the pause after an edit
    assert len(script.heard(NEXT)) == 1
    assert shown(editor) == []
    editor.type("x")
    until(lambda: len(script.heard(NEXT)) == 2, "another question")


def test_a_next_edit_for_another_version_is_not_shown(start_proposing, script):
    editor = start_proposing()
    editor.lua("vim.api.nvim_buf_set_lines(0, -1, -1, true, { '# so' })")
    rename(editor)
    until(lambda: script.heard(NEXT), "the question")
    editor.lua("vim.wait(200)")
    assert shown(editor) == []


def test_a_next_edit_disappears_when_the_text_changes(start_proposing, script):
    editor = start_proposing()
    rename(editor)
    until_shown(editor, "-area", "+size")
    script.answers(NEXT, {"edits": []})
    editor.type("Gdd")
    editor.until(lambda: shown(editor) == [], "nothing")
    assert not editor.said()


def test_leaving_insert_mode_asks_at_once(start_proposing, script):
    editor = start_proposing()
    editor.type("A #<Esc>")
    editor.lua("vim.wait(100)")
    assert len(script.heard(NEXT)) == 1


@pytest.mark.parametrize(
    "how",
    [
        "vim.cmd('normal! V') _G.rename()",
        "vim.snippet.expand('$1 x')",
        "vim.cmd('%s/$/ # so/ | normal! 8ox')",
        "vim.api.nvim_paste(('x\\n'):rep(8), true, -1)",
    ],
    ids=["visual", "snippet", "substitute", "paste"],
)
def test_nothing_is_asked_in_selections_snippets_and_bulk_edits(start_proposing, script, how):
    editor = start_proposing()
    editor.lua(how)
    editor.lua("vim.wait(700)")
    assert not script.heard(NEXT)


@pytest.mark.parametrize("value", ["off", "hint"])
def test_the_setting_turns_them_off_or_into_hints(start_proposing, script, value):
    editor = start_proposing(options={"settings": {"next_edits": value}})
    rename(editor)
    if value == "off":
        editor.lua("vim.wait(700)")
        assert not script.heard(NEXT)
        return
    editor.until(lambda: shown(editor) == [">  <Tab>: line 5"], "the hint")
    editor.type("<Tab>")
    until_shown(editor, "-area", "+size")
    assert editor.text() == RENAMED
    editor.type("<Tab>")
    editor.until_text(RENAMED.replace("area(2", "size(2"))


def test_a_server_without_next_edits_is_not_asked(start, script):
    editor = start()
    editor.lua("vim.api.nvim_buf_set_text(0, 0, 4, 0, 8, { 'size' }) vim.wait(700)")
    assert not script.heard(NEXT)


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
