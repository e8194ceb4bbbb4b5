"""Real Neovim explains wrong servers, options, hosts and buffers in a sentence."""

import pytest

from tests.support.neovim import PLUGIN, WAYS
from tests.support.polling import until

CLIENTS = "return #vim.lsp.get_clients()"
CRASHING = {"last_words": "ImportError: no torch here"}
VERSIONS = pytest.mark.parametrize("start_neovim", WAYS, indirect=True, ids="-".join)


def fails_with(editor, *words):
    editor.until(lambda: editor.state()["kind"] == "Error", "the error")
    message = editor.state()["message"]
    assert all(word in message for word in words), message
    assert editor.said().count(f"foregram: {message}") == 1
    assert editor.lua("return require('foregram').status()") == "foregram: error"


def shows_why(editor, *words):
    editor.type("<Esc>:Foregram why<CR>")
    editor.until(lambda: all(word in editor.text() for word in words), str(words))
    editor.type("q")


def is_off(editor):
    return editor.lua("return require('foregram').status()") == "foregram: off"


def test_a_command_that_is_not_there(scripted_neovim):
    editor = scripted_neovim(options={"cmd": ["nowhere/foregram", "lsp"]})
    fails_with(editor, "`nowhere/foregram` was not found", "the option `cmd`")
    shows_why(editor, "`nowhere/foregram` was not found")
    editor.type(":Foregram doctor<CR>")
    editor.until(lambda: len(editor.said()) == 2, "the sentence")
    assert editor.said()[-1].startswith("foregram: `nowhere/foregram` was not found")


@pytest.mark.parametrize("stays", [False, True], ids=["leaves", "stays"])
def test_a_server_that_is_too_old_is_ended(scripted_neovim, script, stays):
    editor = scripted_neovim(version="0.0.9", stays=stays)
    fails_with(editor, "is version 0.0.9, and the plugin needs 0.1.0", "uv tool upgrade foregram")
    editor.until(lambda: editor.lua(CLIENTS) == 0, "the server's end")
    editor.type("ototal<Esc>")
    assert script.num_starts == 1


def test_a_server_that_is_another_one(scripted_neovim):
    fails_with(scripted_neovim(name="pylsp"), "is not foregram's language server")


@VERSIONS
@pytest.mark.parametrize("moment", ["initialize", "textDocument/didOpen"])
def test_a_server_that_ends_again_and_again_is_left_alone_after_three_times(
    scripted_neovim, script, tmp_path, moment
):
    editor = scripted_neovim(ends_at=moment, **CRASHING)
    said = 'it said "ImportError: no torch here"'
    fails_with(editor, "ended 3 times", "exit status 1", said, "`:Foregram restart`")
    assert script.num_starts == 3
    editor.type("ototal<Esc>")
    editor.until_text("total = 1\ntotal")
    shows_why(editor, "ended 3 times")
    editor.type(":Foregram logs<CR>")
    editor.until(lambda: "ImportError: no torch here" in editor.text(), "the log")
    logs = [path.name for path in tmp_path.rglob("state/nvim/foregram-*")]
    assert logs == [f"foregram-{editor.process.pid}.log"]
    editor.type("q:Foregram restart<CR>")
    editor.until(lambda: script.num_starts == 6, "three more tries")


@pytest.fixture
def none_left(script):
    yield
    until(lambda: not script.processes, "the end of all servers", limit_s=10)


@pytest.fixture
def silent(none_left, scripted_neovim, script):
    """Neovim with a server that never answers `initialize`."""
    editor = scripted_neovim(silent_at="initialize")
    editor.until(lambda: script.processes, "the server")
    return editor


@VERSIONS
def test_a_server_that_does_not_answer_can_be_restarted_and_stopped(silent, script):
    [former] = script.processes
    for _ in range(2):  # the second during the first
        silent.type(":Foregram restart<CR>")
    silent.until(lambda: script.num_starts == 2, "the server again")
    silent.until(lambda: former not in script.processes, "the end of the first")
    assert len(script.processes) == 1
    assert not silent.said()
    silent.type(":Foregram stop<CR>")
    silent.until(lambda: not script.processes, "the server's end")
    silent.type("ototal<Esc>")
    silent.until_text("total = 1\ntotal")
    shows_why(silent, "the server is stopped")
    assert script.num_starts == 2


def test_a_server_that_does_not_answer_is_told_of_and_given_up_like_a_crash(silent, script):
    assert silent.lua("return require('foregram.process').ANSWER_MS") == 30_000
    silent.lua("require('foregram.process').ANSWER_MS = 1000")
    silent.type(":Foregram restart<CR>")
    words = "the server is being started again: no answer for 1 s"
    silent.until(lambda: words in silent.state()["message"], "the state")
    assert silent.state()["kind"] == "Error"
    silent.until(silent.said, "the sentence")
    fails_with(silent, "ended 3 times", "the last time with no answer for 1 s", "restart` tries")
    shows_why(silent, "no answer for 1 s")
    assert script.num_starts == 4
    assert not script.processes


@pytest.mark.parametrize("way", ["start", "enable"])
def test_a_server_that_was_stopped_has_a_way_back_which_is_said(way, scripted_neovim, script):
    editor = scripted_neovim()
    editor.until(lambda: script.num_starts == 1, "the server")
    editor.type(":Foregram stop<CR>")
    editor.until(lambda: any(":Foregram start" in one for one in editor.said()), "the way back")
    editor.type(f":Foregram {way}<CR>")
    editor.until(lambda: script.num_starts == 2, "the server again")
    editor.until(lambda: not is_off(editor), "the state")


def test_a_snooze_says_until_when_and_ends(scripted_neovim):
    editor = scripted_neovim()
    editor.until(lambda: editor.lua(CLIENTS) == 1, "the server")
    editor.type(":Foregram snooze 10<CR>")
    editor.until(lambda: any("Snoozed until" in one for one in editor.said()), "the sentence")
    assert is_off(editor)
    editor.lua("require('foregram').snooze(0.001)")
    editor.until(lambda: not is_off(editor), "the end of it")


def test_a_server_that_ends_at_a_request_is_started_again(scripted_neovim, script):
    editor = scripted_neovim(ends_at="textDocument/inlineCompletion")
    editor.until(lambda: script.num_starts == 1, "the server")
    editor.type("ototal")
    editor.until(lambda: script.num_starts >= 2, "the server again")
    editor.type("<Esc>:Foregram stop<CR>")
    editor.until(lambda: is_off(editor), "the state")
    editor.until(lambda: editor.lua(CLIENTS) == 0, "the server's end")


def test_a_server_that_ends_while_it_is_stopped_is_not_started_again(scripted_neovim):
    editor = scripted_neovim()
    editor.until(lambda: editor.lua(CLIENTS) == 1, "the server")
    editor.lua(
        "local client = vim.lsp.get_clients()[1]; client.config.on_exit(1, 0, client.id);"
        "require('foregram').stop(); vim.schedule(function() vim.g.end_was_seen = true end)"
    )
    editor.until(lambda: editor.lua("return vim.g.end_was_seen"), "the end")
    assert is_off(editor)


def test_wrong_options_are_named_and_the_others_hold(scripted_neovim, script):
    wrong = {"ghost_text": "new", "colour": 1, "keymaps": {"accept": 5}}
    editor = scripted_neovim(options=wrong)
    editor.until(lambda: len(editor.said()) == 3, "the sentences")
    said = " ".join(editor.said())
    for words in ("no option `colour`", "`ghost_text` must be", "`keymaps.accept` must be a key"):
        assert words in said
    until(lambda: script.num_starts == 1, "the server")


@pytest.fixture
def ours(hostless, start_neovim, tmp_path):
    file = tmp_path / "a.py"
    file.write_text("total = 1\n")
    return lambda **settings: start_neovim(hostless, file, settings=settings)


def test_a_wrong_setting_is_named_by_the_server_and_the_others_hold(ours):
    editor = ours(max_tokens="many", enable=False, modle="x")
    told = lambda: editor.messages() + str(editor.said())  # noqa: E731 - asked again and again
    editor.until(lambda: "max_tokens" in told() and "modle" in told(), "the sentence")
    editor.type("ototal")
    editor.until(lambda: editor.state()["kind"] == "Inactive", "the state")
    shows_why(editor, "Suggestions are off")


def test_a_host_that_cannot_be_reached_is_told_in_the_state(ours):
    editor = ours(host_url="http://127.0.0.1:9", token_file="/nowhere/missing")
    editor.until(lambda: editor.state()["kind"] == "Error", "the error")
    assert "/nowhere/missing" in editor.state()["message"]
    editor.type("ototal")
    editor.lua("_G.answers = {}")
    ask = """
    local keep = function(answers) _G.answers = answers end
    require("foregram.questions").execute("foregram.why", nil, keep)
    return #_G.answers
    """
    editor.until(lambda: editor.lua(ask), "an empty answer")
    shows_why(editor, "/nowhere/missing", "the model cannot be reached")


def test_a_read_only_file_can_be_completed_in_and_a_locked_buffer_cannot(scripted_neovim, script):
    editor = scripted_neovim(line="total = 1 + 1")
    until(lambda: script.num_starts == 1, "the server")
    editor.type(":set readonly<CR>ototal")
    editor.until_ghost()
    editor.type("<Esc>:enew! | setlocal nomodifiable<CR>")
    shows_why(editor, "the buffer cannot be changed")


def test_buffers_without_a_name_are_completed_in_one_at_a_time(scripted_neovim, script, tmp_path):
    editor = scripted_neovim(line="total = 1 + 1")
    until(lambda: script.num_starts == 1, "the server")
    editor.type(":set hidden<CR>:enew<CR>itotal")
    editor.until_ghost()
    editor.type("<Tab><Esc>:enew<CR>itotal<Esc>")
    shows_why(editor, "the buffer has no name")
    editor.type(f":write {tmp_path}/b.py<CR>A =")
    assert editor.until_ghost() == " 1 + 1"


def test_windows_that_are_no_file_are_left_alone(scripted_neovim):
    editor = scripted_neovim()
    editor.type(":help foregram<CR>")
    editor.until(lambda: "Code completion from your own model" in editor.text(), "the help")
    assert editor.lua("return vim.api.nvim_buf_get_name(0)") == f"{PLUGIN}/doc/foregram.txt"
    shows_why(editor, "the buffer is not a file")
