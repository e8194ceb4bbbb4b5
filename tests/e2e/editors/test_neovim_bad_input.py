"""What goes wrong in real Neovim ends in a sentence: servers, options, buffers."""

import json
import shutil
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support import neovim_server
from tests.support.editor_home import COMMAND, own_home
from tests.support.neovim import PLUGIN, Neovim, neovim, setup_table
from tests.support.polling import until

pytestmark = [pytest.mark.e2e, pytest.mark.editors, pytest.mark.timeout(300)]

SERVER = [str(COMMAND), "lsp"]


@pytest.fixture(params=["0.11", "0.12"])
def start(request, tmp_path):
    """Starts Neovim with options, in one version, without a host."""
    with own_home() as environ, ExitStack() as stack:

        def started(*files: Path, **options) -> Neovim:
            setup = setup_table(options)
            run = neovim(request.param, environ, tmp_path / "xdg", *files, setup=setup)
            return stack.enter_context(run)

        yield started


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "a.py"
    path.write_text("total = 1\n")
    return path


def scripted(folder, **script) -> list[str]:
    """The command of a server that follows a script, in a file: a test may change it."""
    script = {"log": str(folder / "log")} | script
    return [sys.executable, neovim_server.__file__, json.dumps(script)]


def starts(folder) -> int:
    log = folder / "log"
    return log.read_text().count('"method": "initialize"') if log.exists() else 0


def processes(folder) -> list[int]:
    """The servers that were started and have not ended."""
    log = folder / "log"
    lines = log.read_text().splitlines() if log.exists() else []
    pids = {json.loads(line)["pid"] for line in lines}
    return [pid for pid in pids if Path(f"/proc/{pid}").exists()]


def fails_with(editor, *words):
    """The state is an error that says all this, and so does one message."""
    editor.until(lambda: editor.state()["kind"] == "Error", "the error")
    message = editor.state()["message"]
    assert all(word in message for word in words), message
    assert editor.said().count(f"foregram: {message}") == 1
    assert editor.lua("return require('foregram').status()") == "foregram: error"


def shows_why(editor, *words):
    """`:Foregram why` says all this."""
    editor.type("<Esc>:Foregram why<CR>")
    editor.until(lambda: all(word in editor.text() for word in words), str(words))
    editor.type("q")


def until_answered(editor):
    """Wait until the server has given an empty answer."""
    editor.lua("_G.answers = {}")
    ask = """
    local keep = function(answers) _G.answers = answers end
    require("foregram.questions").execute("foregram.why", nil, keep)
    return #_G.answers
    """
    editor.until(lambda: editor.lua(ask), "an answer")


def test_a_command_that_is_not_there(start, file):
    editor = start(file, cmd=["nowhere/foregram", "lsp"])
    fails_with(editor, "`nowhere/foregram` was not found", "the option `cmd`")
    shows_why(editor, "`nowhere/foregram` was not found")
    editor.type(":Foregram doctor<CR>")
    editor.until(lambda: "cannot be run" in editor.said()[-1], "the sentence")


@pytest.mark.parametrize("stays", [False, True], ids=["leaves", "stays"])
def test_a_server_that_is_too_old_is_ended(start, file, tmp_path, stays):
    editor = start(file, cmd=scripted(tmp_path, version="0.0.9", stays=stays))
    fails_with(editor, "is version 0.0.9, and the plugin needs 0.1.0", "pip install --upgrade")
    editor.until(lambda: editor.lua("return #vim.lsp.get_clients()") == 0, "the server's end")
    editor.type("ototal<Esc>")
    assert starts(tmp_path) == 1


def test_a_server_that_is_another_one(start, file, tmp_path):
    fails_with(
        start(file, cmd=scripted(tmp_path, name="pylsp")), "is not foregram's language server"
    )


@pytest.mark.parametrize("moment", ["initialize", "textDocument/didOpen"])
def test_a_server_that_ends_again_and_again_is_left_alone_after_three_times(
    start, file, tmp_path, moment
):
    broken = scripted(tmp_path, ends_at=moment, last_words="ImportError: no torch here")
    editor = start(file, cmd=broken)
    fails_with(
        editor,
        "ended 3 times",
        "exit status 3",
        'it said "ImportError: no torch here"',
        "`:Foregram restart`",
    )
    assert starts(tmp_path) == 3
    editor.type("ototal<Esc>")
    editor.until_text("total = 1\ntotal")
    shows_why(editor, "ended 3 times")
    editor.type(":Foregram restart<CR>")
    editor.until(lambda: starts(tmp_path) == 6, "three more tries")


@pytest.fixture
def silent(tmp_path):
    """The command of a server that never answers `initialize`; none may be left after the test."""
    yield scripted(tmp_path, silent_at="initialize")
    until(lambda: not processes(tmp_path), "the end of all servers", limit_s=5)


def test_a_server_that_does_not_answer_can_be_stopped(silent, start, file, tmp_path):
    editor = start(file, cmd=silent)
    editor.until(lambda: starts(tmp_path) == 1, "the server")
    editor.type(":Foregram stop<CR>")
    editor.until(lambda: not processes(tmp_path), "the server's end")
    editor.type("ototal<Esc>")
    editor.until_text("total = 1\ntotal")
    shows_why(editor, "the server is stopped")
    assert starts(tmp_path) == 1


@pytest.mark.parametrize("way", ["start", "enable"])
def test_a_server_that_was_stopped_has_a_way_back_which_is_said(way, start, file, tmp_path):
    editor = start(file, cmd=scripted(tmp_path))
    editor.until(lambda: starts(tmp_path) == 1, "the server")
    editor.type(":Foregram stop<CR>")
    editor.until(lambda: any(":Foregram start" in one for one in editor.said()), "the way back")
    editor.type(f":Foregram {way}<CR>")
    editor.until(lambda: starts(tmp_path) == 2, "the server again")
    editor.until(lambda: not is_off(editor), "the state")


def test_a_snooze_says_until_when_and_ends(start, file, tmp_path):
    editor = start(file, cmd=scripted(tmp_path))
    editor.until(lambda: editor.lua("return #vim.lsp.get_clients()") == 1, "the server")
    editor.type(":Foregram snooze 10<CR>")
    editor.until(lambda: any("Snoozed until" in one for one in editor.said()), "the sentence")
    assert is_off(editor)
    editor.lua("require('foregram').snooze(0.001)")
    editor.until(lambda: not is_off(editor), "the end of it")


def test_a_server_that_does_not_answer_can_be_restarted(silent, start, file, tmp_path):
    editor = start(file, cmd=silent)
    [former] = until(lambda: processes(tmp_path), "the server")
    for _ in range(2):  # the second one while the first is being done
        editor.type(":Foregram restart<CR>")
    editor.until(lambda: starts(tmp_path) == 2, "the server again")
    editor.until(lambda: former not in processes(tmp_path), "the end of the first")
    assert len(processes(tmp_path)) == 1
    assert not editor.said()


def test_a_server_that_does_not_answer_is_told_of_and_given_up_like_a_crash(
    silent, start, file, tmp_path
):
    editor = start(file, cmd=silent)
    editor.until(lambda: starts(tmp_path) == 1, "the server")
    assert editor.lua("return require('foregram.process').ANSWER_MS") == 30_000
    editor.lua("require('foregram.process').ANSWER_MS = 1000")
    editor.type(":Foregram restart<CR>")
    words = "the server is being started again: no answer for 1 s"
    editor.until(lambda: words in editor.state()["message"], "the state")
    assert editor.state()["kind"] == "Error"
    editor.until(editor.said, "the sentence")
    fails_with(editor, "ended 3 times", "the last time with no answer for 1 s", "restart` tries")
    shows_why(editor, "no answer for 1 s")
    assert starts(tmp_path) == 4
    assert not processes(tmp_path)


def test_a_server_that_does_not_answer_ends_with_neovim(silent, start, file, tmp_path):
    editor = start(file, cmd=silent)
    editor.until(lambda: processes(tmp_path), "the server")


def test_a_server_that_ends_at_a_request_is_started_again(start, file, tmp_path):
    broken = scripted(tmp_path, ends_at="textDocument/inlineCompletion")
    editor = start(file, cmd=broken)
    editor.until(lambda: starts(tmp_path) == 1, "the server")
    editor.type("ototal")
    editor.until(lambda: starts(tmp_path) >= 2, "the server again")
    editor.type("<Esc>:Foregram stop<CR>")
    editor.until(lambda: is_off(editor), "the state")
    editor.until(lambda: editor.lua("return #vim.lsp.get_clients()") == 0, "the server's end")


def test_a_server_that_ends_while_it_is_stopped_is_not_started_again(start, file, tmp_path):
    editor = start(file, cmd=scripted(tmp_path))
    editor.until(lambda: editor.lua("return #vim.lsp.get_clients()") == 1, "the server")
    editor.lua(
        "local client = vim.lsp.get_clients()[1]; client.config.on_exit(1, 0, client.id);"
        "require('foregram').stop(); vim.schedule(function() vim.g.end_was_seen = true end)"
    )
    editor.until(lambda: editor.lua("return vim.g.end_was_seen"), "the end")
    assert is_off(editor)


def is_off(editor):
    return editor.lua("return require('foregram').status()") == "foregram: off"


def test_wrong_options_are_named_and_the_others_hold(start, file, tmp_path):
    editor = start(file, cmd=scripted(tmp_path), ghost_text="new", colour=1, keymaps={"accept": 5})
    editor.until(lambda: len(editor.said()) == 3, "the sentences")
    said = " ".join(editor.said())
    for words in ("no option `colour`", "`ghost_text` must be", "`keymaps.accept` must be a key"):
        assert words in said
    until(lambda: starts(tmp_path) == 1, "the server")


def test_a_setting_of_the_wrong_type_is_named_by_the_server_and_the_others_hold(start, file):
    editor = start(file, cmd=SERVER, settings={"max_tokens": "many", "enable": False, "modle": "x"})
    editor.until(lambda: "max_tokens" in editor.messages() + str(editor.said()), "the sentence")
    said = editor.messages() + str(editor.said())
    assert "modle" in said
    editor.type("ototal")
    editor.until(lambda: editor.state()["kind"] == "Inactive", "the state")
    shows_why(editor, "Suggestions are off")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"host_url": "http://127.0.0.1:9"}, "127.0.0.1:9"),
        ({"host_url": "https://nowhere.invalid"}, "nowhere.invalid"),
        ({"host_url": "http://127.0.0.1:9", "token_file": "/nowhere/missing"}, "missing"),
    ],
    ids=["nobody listens", "no network", "no token file"],
)
def test_a_host_that_cannot_be_reached_is_told_in_the_state(start, file, settings, words):
    editor = start(file, cmd=SERVER, settings=settings)
    editor.until(lambda: editor.state()["kind"] == "Error", "the error")
    assert words in editor.state()["message"]
    editor.type("ototal")
    until_answered(editor)
    shows_why(editor, words, "the model cannot be reached")


def test_a_wrong_url_is_named(start, file):
    editor = start(file, cmd=SERVER, settings={"host_url": "gpu:80", "enable": False})
    editor.until(lambda: "host_url" in editor.messages() + str(editor.said()), "the sentence")


def test_a_read_only_file_can_be_completed_in_and_a_locked_buffer_cannot(start, file, tmp_path):
    file.chmod(0o444)
    editor = start(file, cmd=scripted(tmp_path, line="total = 1 + 1"))
    until(lambda: starts(tmp_path) == 1, "the server")
    editor.type(":set readonly<CR>ototal")
    editor.until_ghost()
    editor.type("<Esc>:enew | setlocal nomodifiable<CR>")
    shows_why(editor, "the buffer cannot be changed")


def test_buffers_without_a_name_are_completed_in_one_at_a_time(start, tmp_path):
    editor = start(cmd=scripted(tmp_path, line="total = 1 + 1"))
    until(lambda: starts(tmp_path) == 1, "the server")
    editor.type("itotal")
    editor.until_ghost()
    editor.type("<Tab><Esc>:set hidden<CR>:enew<CR>itotal<Esc>")
    shows_why(editor, "the buffer has no name")
    editor.type(f":write {tmp_path}/b.py<CR>A =")
    assert editor.until_ghost() == " 1 + 1"


def test_windows_that_are_no_file_are_left_alone(start, tmp_path):
    editor = start(cmd=scripted(tmp_path))
    copy = tmp_path / "copy"  # the tags would be written beside the text
    shutil.copytree(PLUGIN / "doc", copy / "doc")
    editor.type(f":helptags {copy}/doc | set rtp+={copy} | help foregram<CR>")
    editor.until(lambda: "Code completion from your own model" in editor.text(), "the help")
    shows_why(editor, "the buffer is not a file")


def test_a_file_over_the_size_limit_is_left_alone_with_a_reason(start, tmp_path):
    large = tmp_path / "large.py"
    with large.open("w") as text:
        text.writelines(f"name_{number} = {number}\n" for number in range(1_100_000))
    assert large.stat().st_size > 20 * 2**20
    editor = start(large, cmd=SERVER, settings={"host_url": "http://127.0.0.1:9"})
    editor.until(lambda: editor.state()["kind"] == "Error", "the server")
    editor.type("ototal")
    until_answered(editor)
    shows_why(editor, "the file is too large")


def test_the_log_shows_what_the_server_printed(start, file, tmp_path):
    broken = scripted(tmp_path, ends_at="initialize", last_words="ImportError: no torch here")
    editor = start(file, cmd=broken)
    fails_with(editor, "ended 3 times")
    editor.type(":Foregram logs<CR>")
    editor.until(lambda: "ImportError: no torch here" in editor.text(), "the log")
    state = tmp_path / "xdg/state/nvim"
    assert [path.name for path in state.glob("foregram-*")] == [
        f"foregram-{editor.process.pid}.log"
    ]
