"""Next edits in real Neovim: when they are asked for, how they are shown, and made by a key."""

from pathlib import Path

import pytest

from engine.request import EditOutcome
from tests.support.edit_engine import EditEngine, served_edits
from tests.support.neovim import WAYS
from tests.support.polling import until
from tests.support.shown_changes import TEXT, edit, shown, until_shown, version

NEXT = "textDocument/copilotInlineEdit"
COMMANDS = [
    f"github.copilot.did{word}NextEditSuggestionItem" for word in ("Accept", "Reject", "Ignore")
]
ACCEPTED, REJECTED, IGNORED = COMMANDS
RENAMED = TEXT.replace("area", "size", 1).rstrip("\n")
MENDED = RENAMED.replace("area(2", "size(2")
NOTHING = EditOutcome(refusal="no_change")
VERSIONS = pytest.mark.parametrize("start_neovim", WAYS, indirect=True, ids="-".join)
# The pause after an edit ends when a test says so.
CLOCK = """
local defer = vim.defer_fn
_G.pauses = {}
vim.defer_fn = function(act, ms)
  if ms ~= 300 then return defer(act, ms) end
  table.insert(_G.pauses, act)
end
"""
END_PAUSES = """
local pauses = _G.pauses
_G.pauses = {}
for _, act in ipairs(pauses) do act() end
"""
TYPED = "_G.num_seen = (_G.num_seen or 0) + 1"
DIAGNOSE = """
local found = { lnum = ..., col = 0, message = select(2, ...), severity = select(3, ...) }
vim.diagnostic.set(vim.api.nvim_create_namespace("linter"), 0, { found })
"""


@pytest.fixture
def start_proposing(scripted_neovim, script, tmp_path):
    """Neovim with a server that proposes to rename the call, once the function is renamed."""

    def started(*edits, text=TEXT, more=None, before="", **given):
        editor = scripted_neovim(text, commands=COMMANDS, before=before, **given)
        running = "return require('foregram.client').get() ~= nil"
        editor.until(lambda: editor.lua(running), "the server")
        document = {"version": editor.lua("return vim.b.changedtick") + 1}
        document["uri"] = (tmp_path / "a.py").as_uri()
        command = {"title": "", "command": ACCEPTED, "arguments": ["one"]}
        script.answers(NEXT, {**(more or {}), "edits": [
            {"range": one["range"], "text": one["newText"], "textDocument": document, "command": command}
            for one in edits or [edit((4, 12), (4, 16), "size")]
        ]})  # fmt: skip
        editor.lua(
            "_G.rename = function() vim.api.nvim_buf_set_text(0, 0, 4, 0, 8, { 'size' }) end"
        )
        return editor

    return started


def after_pauses(editor, *methods):
    """Let what was typed and what it sets off happen, then all pauses end, and the server answer."""
    editor.lua("_G.is_quiet = false vim.schedule(function() _G.is_quiet = true end)")
    editor.until(lambda: editor.lua("return _G.is_quiet"), "what the keys set off")
    editor.lua(END_PAUSES)
    sync = "vim.lsp.get_clients({ name = 'foregram' })[1]:request_sync('scripted/asked', {}, 20000)"
    assert editor.lua(f"return {sync} ~= nil")


def typed(editor, keys):
    """Type keys, and return once Neovim has read them."""
    number = editor.lua(f"{TYPED} return _G.num_seen")
    editor.type(f"{keys}<Cmd>lua {TYPED}<CR>")
    editor.until(lambda: editor.lua("return _G.num_seen") > number, keys)


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
    editor.until_text(MENDED)
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
    editor = start_proposing(before=CLOCK)
    editor.type(mode)
    rename(editor)
    editor.until(lambda: editor.lua("return #_G.pauses") == 1, "a pause")
    after_pauses(editor)
    until_shown(editor, "-area", "+size")
    editor.type("<C-]>" if mode else "<Esc>")
    editor.until(lambda: shown(editor) == [], "nothing")
    until(lambda: commands(script) == [(REJECTED, ["one"])], "the reject")
    typed(editor, "<Esc>a<Esc>jk:w<CR>A<Esc>")
    editor.lua(DIAGNOSE, 1, "no such name", 1)
    after_pauses(editor)
    assert len(script.heard(NEXT)) == 1
    assert shown(editor) == []
    editor.type("x")
    editor.until(lambda: editor.lua("return #_G.pauses") == 1, "a pause")
    after_pauses(editor)
    assert len(script.heard(NEXT)) == 2


def test_a_next_edit_for_another_version_is_not_shown(start_proposing, script):
    editor = start_proposing(before=CLOCK)
    editor.lua("vim.api.nvim_buf_set_lines(0, -1, -1, true, { '# so' })")
    rename(editor)
    editor.until(lambda: editor.lua("return #_G.pauses") > 0, "a pause")
    after_pauses(editor)
    assert len(script.heard(NEXT)) == 1
    assert shown(editor) == []


@pytest.mark.parametrize(
    "way", ["Gdd", ":bwipeout!<CR>", ":Foregram edit so<CR>", ":Foregram stop<CR>"]
)
def test_a_next_edit_that_is_passed_over_disappears_and_the_server_hears_of_it(
    start_proposing, script, way
):
    editor = start_proposing()
    rename(editor)
    until_shown(editor, "-area", "+size")
    script.answers(NEXT, {"edits": []})
    script.holds("foregram.edit")
    typed(editor, way)
    editor.until(lambda: not [one for one in shown(editor) if one[0] != ">"], "nothing")
    if "stop" not in way:
        until(lambda: (IGNORED, ["one"]) in commands(script), "the server hears of it")
        assert not editor.said()


def test_leaving_insert_mode_asks_at_once(start_proposing, script):
    editor = start_proposing(before=CLOCK)
    editor.type("A #<Esc>")
    until(lambda: script.heard(NEXT), "the question")
    after_pauses(editor)
    assert len(script.heard(NEXT)) == 1


def test_after_ghost_text_was_accepted_it_is_asked_at_once(start_proposing, script):
    editor = start_proposing(before=CLOCK, text="total = 1\n", line="total = 123")
    editor.type("A2")
    assert editor.until_ghost() == "3"
    assert not script.heard(NEXT)
    editor.type("<Tab>")
    until(lambda: script.heard(NEXT), "the question")
    assert [one["command"] for one in script.heard("workspace/executeCommand")] == [
        "scripted.accept"
    ]


def test_a_new_diagnostic_near_an_edit_leads_to_another_question(start_proposing, script):
    editor = start_proposing(edit((4, 0), (4, 0), ""), before=CLOCK)
    editor.lua(DIAGNOSE, 4, "known", 1)
    after_pauses(editor)
    assert not script.heard(NEXT)  # nothing was edited
    rename(editor)
    editor.until(lambda: editor.lua("return #_G.pauses") == 1, "a pause")
    after_pauses(editor)
    assert len(script.heard(NEXT)) == 1
    for line, message, severity in ((4, "known", 1), (4, "a hint", 4)):
        editor.lua(DIAGNOSE, line, message, severity)
        after_pauses(editor)
    assert len(script.heard(NEXT)) == 1
    editor.lua(DIAGNOSE, 4, "`area` is not defined 👍", 1)
    after_pauses(editor)
    [_, asked] = script.heard(NEXT)
    [told] = asked["diagnostics"]
    assert told == {
        "message": "`area` is not defined 👍",
        "range": edit((4, 0), (5, 0), "")["range"],
    }


def test_a_diagnostic_far_from_the_edit_leads_to_no_question(start_proposing, script):
    editor = start_proposing(text=TEXT + "\n" * 20, before=CLOCK)
    rename(editor)
    editor.until(lambda: editor.lua("return #_G.pauses") == 1, "a pause")
    script.answers(NEXT, {"edits": []})
    after_pauses(editor)
    editor.lua(DIAGNOSE, 20, "elsewhere", 1)
    after_pauses(editor)
    assert len(script.heard(NEXT)) == 1


@pytest.mark.parametrize(
    "how",
    ["vim.cmd('normal! V') _G.rename()", "vim.snippet.expand('$1 x')"],
    ids=["visual", "snippet"],
)
def test_nothing_is_asked_in_selections_and_snippets(start_proposing, script, how):
    editor = start_proposing(before=CLOCK)
    editor.lua(how)
    after_pauses(editor)
    after_pauses(editor)
    assert script.heard("textDocument/didChange")
    assert not script.heard(NEXT)


def test_a_hint_says_where_it_is_and_the_first_key_shows_it(start_proposing):
    editor = start_proposing(more={"isHint": True})
    rename(editor)
    editor.until(lambda: shown(editor) == [">  <Tab>: line 5"], "the hint")
    editor.type("<Tab>")
    until_shown(editor, "-area", "+size")
    assert editor.text() == RENAMED
    editor.type("<Tab>")
    editor.until_text(MENDED)


def test_a_server_without_next_edits_is_not_asked(scripted_neovim, script):
    editor = scripted_neovim(TEXT, before=CLOCK)
    until(lambda: script.heard("textDocument/didOpen"), "the server")
    editor.lua("vim.api.nvim_buf_set_text(0, 0, 4, 0, 8, { 'size' })")
    after_pauses(editor)
    assert script.heard("textDocument/didChange")
    assert not script.heard(NEXT)


def test_an_edit_in_a_closed_fold_is_gone_to_before_it_is_made(start_proposing):
    editor = start_proposing()
    editor.type("GVkzf")
    rename(editor)
    until_shown(editor, "-area", "+size")
    editor.type("<Tab>")
    editor.until(lambda: editor.lua("return vim.fn.foldclosed(5)") == -1, "an open fold")
    assert editor.text() == RENAMED
    editor.type("<Tab>")
    editor.until_text(MENDED)


def test_two_windows_of_a_buffer_show_one_edit_and_each_key_goes_back_to_its_user(start_proposing):
    own = "vim.keymap.set('n', '<Tab>', function() _G.was_called = true end, { buffer = true })"
    editor = start_proposing()
    editor.lua(own)
    rename(editor)
    until_shown(editor, "-area", "+size")
    typed(editor, "<C-w>sG")
    assert shown(editor) == ["-area", "+size"]
    typed(editor, "<C-w>p")
    assert ">  <Tab>: line 5" in shown(editor)
    typed(editor, "<C-w>p<Tab>")
    editor.until_text(MENDED)
    assert shown(editor) == []
    assert not editor.lua("return _G.was_called")
    typed(editor, "<Tab>")
    assert editor.lua("return _G.was_called")


def test_a_buffer_that_became_unmodifiable_is_not_changed(start_proposing):
    editor = start_proposing(edit((1, 4), (1, 10), "yield"))
    rename(editor)
    until_shown(editor, "-return", "+yield")
    editor.type(":set nomodifiable<CR><Tab>")
    editor.until(lambda: "foregram: the buffer cannot be changed" in editor.said(), "a sentence")
    assert editor.text() == RENAMED


RENAMES = EditOutcome(4, 5, ("print('𝄞', size(2, 3))",), probability=0.9)
WHY = """
local client = require("foregram.client").get()
local why = { command = "foregram.why" }
local answer = client and client:request_sync("workspace/executeCommand", why, 20000)
return vim.tbl_map(function(one) return one.reason end, answer and answer.result or { })
"""


@pytest.fixture
def start_ours(hostless, start_neovim, tmp_path):
    """Neovim with our server, whose host has this engine."""

    def started(**options):
        file = tmp_path / "a.py"
        file.write_text(TEXT)
        environ = {**hostless, "FOREGRAM_CONFIG": str(Path(hostless["HOME"]) / "foregram.toml")}
        editor = start_neovim(environ, file, before=CLOCK, **options)
        editor.until(lambda: "fake" in editor.state().get("message", ""), "the host", 30)
        editor.lua(WHY)
        return editor

    return started


def after_answer(editor, num_answers):
    """Let pauses end, and return the reasons of empty answers once there are so many."""
    after_pauses(editor)
    editor.until(lambda: len(editor.lua(WHY)) >= num_answers, "an answer")
    return editor.lua(WHY)


@pytest.mark.parametrize(
    "how",
    ["vim.cmd('%s/$/ # so/ | normal! 8ox')", "vim.api.nvim_paste(('x\\n'):rep(8), true, -1)"],
    ids=["substitute", "paste"],
)
def test_a_bulk_edit_is_followed_by_no_next_edit(hostless, start_ours, how):
    engine = EditEngine(RENAMES)
    with served_edits(engine, hostless):
        editor = start_ours()
        editor.lua(how)
        assert after_answer(editor, 1) == ["bulk_edit"]
        assert not engine.num_asked


@pytest.mark.parametrize("value", ["off", "hint"])
@pytest.mark.parametrize("source", ["plugin", "file"])
def test_the_setting_turns_them_off_or_into_hints(hostless, start_ours, value, source):
    options = {"settings": {"next_edits": value}} if source == "plugin" else {}
    config = Path(hostless["HOME"]) / "foregram.toml"
    config.write_text(f'next_edits = "{value}"\n' if source == "file" else "")
    engine = EditEngine(RENAMES)
    with served_edits(engine, hostless):
        editor = start_ours(**options)
        editor.lua("vim.api.nvim_buf_set_text(0, 0, 4, 0, 8, { 'size' })")
        editor.until(lambda: editor.lua("return #_G.pauses") > 0, "a pause")
        if value == "off":
            assert after_answer(editor, 1) == ["next_edits_off"]
            assert not engine.num_asked
            return
        after_pauses(editor)
        editor.until(lambda: shown(editor) == [">  <Tab>: line 5"], "the hint")
        editor.type("<Tab>")
        until_shown(editor, "-area", "+size")
        assert editor.text() == RENAMED
