"""What real Neovim shows of a server that starts and loads, and why nothing is shown."""

import json
import shutil
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support import neovim_server
from tests.support.editor_home import own_home
from tests.support.neovim import PLUGIN, Neovim, neovim, setup_table
from tests.support.polling import until

pytestmark = [pytest.mark.e2e, pytest.mark.editors, pytest.mark.timeout(300)]

WAYS = [("0.11", "auto"), ("0.12", "auto"), ("0.12", "own")]
REMEDY = {"action": "allowFile", "title": "Allow this file"}
SECRET = {"sentence": "the file may hold secrets", "age_s": 3, "remedy": REMEDY}


@pytest.fixture(params=WAYS, ids="-".join)
def start(request, tmp_path):
    """Starts Neovim on a file with a server that follows a script."""
    version, ghost_text = request.param
    file = tmp_path / "a.py"
    file.write_text("total = 1\n")
    with own_home() as environ, ExitStack() as stack:

        def started(before="", **script) -> Neovim:
            words = json.dumps({"log": str(tmp_path / "log")} | script)
            cmd = [sys.executable, neovim_server.__file__, words, "lsp"]
            setup = setup_table({"cmd": cmd, "ghost_text": ghost_text})
            run = neovim(version, environ, tmp_path / "xdg", file, setup=setup, before=before)
            return stack.enter_context(run)

        yield started


def messages(folder, method):
    """What the server got under a method."""
    log = folder / "log"
    lines = map(json.loads, log.read_text().splitlines()) if log.exists() else ()
    return [line["params"] for line in lines if line["method"] == method]


def test_what_was_typed_while_the_model_loads_is_completed_when_it_is_ready(start, tmp_path):
    loaded = tmp_path / "loaded"
    editor = start(line="total = 1 + 1", loads_until=str(loaded))
    editor.until(lambda: editor.state().get("percent") == 42, "the loading")
    assert editor.lua("return require('foregram').status()") == "foregram: 42 %"
    editor.type("ototal =")
    until(lambda: messages(tmp_path, "textDocument/inlineCompletion"), "a request in vain")
    editor.until_text("total = 1\ntotal =")
    assert not editor.ghost()
    loaded.touch()
    assert editor.until_ghost() == " 1 + 1"
    assert editor.lua("return require('foregram').status()") == "foregram"
    asked = messages(tmp_path, "textDocument/inlineCompletion")[-1]
    assert (asked["position"], asked["context"]) == (
        {"line": 1, "character": 7},
        {"triggerKind": 2},
    )


def test_nothing_is_asked_again_outside_of_insert_mode(start, tmp_path):
    loaded = tmp_path / "loaded"
    editor = start(line="total = 1 + 1", loads_until=str(loaded))
    editor.until(lambda: editor.state().get("percent") == 42, "the loading")
    editor.type("ototal =<Esc>")
    editor.until_text("total = 1\ntotal =")
    round_trips(editor)
    num_asked = len(messages(tmp_path, "textDocument/inlineCompletion"))
    loaded.touch()
    editor.until(lambda: editor.state().get("state") == "ready", "the model")
    round_trips(editor)
    assert len(messages(tmp_path, "textDocument/inlineCompletion")) == num_asked
    assert not editor.ghost()


def round_trips(editor):
    """Two: with the first what the server sent before is handled, with the second it has the reply."""
    editor.lua("""
        local client = require("foregram.client").get()
        for _ = 1, 2 do
          client:request_sync("workspace/executeCommand", { command = "nothing" }, 20000)
        end
    """)


def test_the_file_that_is_looked_at_is_told_when_it_is_attached(start, tmp_path):
    def focused():
        told = messages(tmp_path, "textDocument/didFocus")
        return [Path(params["textDocument"]["uri"]).name for params in told]

    editor = start()
    until(lambda: focused() == ["a.py"], "the first file")
    editor.type(f":edit {tmp_path}/b.py<CR>")
    until(lambda: focused() == ["a.py", "b.py"], "the second file")


def test_the_server_knows_that_the_plugin_asks_again(start, tmp_path):
    start()
    [params] = until(lambda: messages(tmp_path, "initialize"), "the server")
    assert params["initializationOptions"]["asksAgain"] is True


def test_a_server_that_was_just_started_is_starting_and_not_off(start):
    seen = "_G.first = { require('foregram').status(), require('foregram').state().message }"
    watch = f"vim.api.nvim_create_autocmd('VimEnter', {{ callback = function() {seen} end }})"
    editor = start(before=watch, silent_at="initialize")
    editor.until(lambda: editor.lua("return _G.first ~= nil"), "the first look")
    assert editor.lua("return _G.first") == ["foregram: starting", "starting"]
    assert editor.state()["message"] == "starting"
    editor.type(":Foregram why<CR>")
    editor.until(lambda: editor.text() == "The server is starting.", "the report")
    editor.type(":checkhealth foregram<CR>")
    editor.until(lambda: "the server is starting" in editor.text(), "the health")
    assert ":Foregram restart" not in editor.text()


def test_the_status_says_what_helps(start):
    status = {
        "kind": "Error",
        "message": "there is no model `x`",
        "state": "failed",
        "remedy": {"action": "chooseModel", "title": "Choose another model"},
    }
    editor = start(status=status)
    editor.until(lambda: editor.state()["kind"] == "Error", "the state")
    editor.type(":Foregram<CR>")
    editor.until(lambda: "Error: there is no model `x`" in editor.text(), "the report")
    assert "Choose another model: `:Foregram model NAME`" in editor.text()


def test_another_model_than_the_one_that_is_set_is_a_warning(start):
    sentence = 'Tiny is running, but the settings ask for "Big"'
    status = {
        "kind": "Warning",
        "message": sentence,
        "state": "ready",
        "model": "Tiny",
        "configuredModel": "Big",
        "remedy": {"action": "restart", "title": "Restart with Big"},
    }
    editor = start(status=status, results={"foregram.why": {"answers": []}})
    editor.until(lambda: editor.state()["kind"] == "Warning", "the state")
    assert editor.lua("return require('foregram').status()") == "foregram: warning"
    editor.type(":Foregram<CR>")
    lines = f"Warning: {sentence}\nRestart with Big: `:Foregram model NAME`"
    editor.until(lambda: editor.text() == lines, "the report")
    editor.type(":Foregram why<CR>")
    editor.until(lambda: f"The state: {sentence}." in editor.text(), "the state")
    editor.type(":checkhealth foregram<CR>")
    editor.until(lambda: f"WARNING {sentence}" in editor.text(), "the warning")


def test_why_speaks_of_the_file_and_place_that_are_looked_at(start, tmp_path):
    told = {"now": SECRET, "answers": [{"sentence": "it is late", "age_s": 754, "line": 2}]}
    editor = start(results={"foregram.why": told})
    until_running(editor)
    for _ in range(2):  # also from within the report
        editor.type(":Foregram why<CR>")
        editor.until(lambda: "12 min ago, line 2: it is late" in editor.text(), "the report")
    assert "Nothing is shown in a.py now: the file may hold secrets." in editor.text()
    assert "Allow this file: name it in `allow_secret_files`" in editor.text()
    until(lambda: len(messages(tmp_path, "workspace/executeCommand")) == 2, "both questions")
    for asked in messages(tmp_path, "workspace/executeCommand"):
        [place] = asked["arguments"]
        assert place["textDocument"]["uri"].endswith("/a.py")
        assert place["position"] == {"line": 0, "character": 0}


def test_all_reports_share_one_window(start):
    editor = start(results={"foregram.why": {"now": SECRET, "answers": []}})
    until_running(editor)
    for command, words in (
        ("status", "Normal: "),
        ("why", "may hold secrets"),
        ("logs", "the output of logs"),
        ("doctor", "the output of doctor"),
        ("why", "may hold secrets"),
    ):
        editor.type(f":Foregram {command}<CR>")
        editor.until(lambda words=words: words in editor.text(), words)
        assert editor.lua("return #vim.api.nvim_list_wins()") == 2
        assert editor.lua("return vim.api.nvim_win_get_height(0)") > editor.text().count("\n") + 1
    editor.type("q")
    editor.until(lambda: editor.lua("return #vim.api.nvim_list_wins()") == 1, "one window")


def until_running(editor):
    editor.until(lambda: editor.lua("return require('foregram.client').get() ~= nil"), "the server")


def models(folder):
    """The model that each start of the server was told of."""
    options = [params["initializationOptions"] for params in messages(folder, "initialize")]
    return [one["foregram"].get("model") for one in options]


def test_a_wrong_model_name_is_refused_with_near_names(start, tmp_path):
    wrong = {"ok": False, "sentence": "there is no model `qwen9b`", "near": ["7b", "14b"]}
    editor = start(results={"foregram.checkModel": wrong})
    until_running(editor)
    editor.type(":Foregram model qwen9b<CR>")
    editor.until(editor.said, "the sentence")
    assert editor.said() == ["foregram: there is no model `qwen9b`; near names: `7b`, `14b`"]
    assert models(tmp_path) == [None]


KNOWN = {"running": True, "model": "Tiny", "numOtherClients": 2}
ASKED = "2 other windows or editors use Tiny. It ends for all of them. Go on?"
UNSURE = "Other windows or editors may use the model that runs now. It ends for all of them. Go on?"


@pytest.mark.parametrize(
    ("use", "question", "choice"), [(KNOWN, ASKED, 2), (KNOWN, ASKED, 1), (None, UNSURE, 2)]
)
def test_a_host_that_others_use_ends_only_for_who_says_so(start, tmp_path, use, question, choice):
    # Without a screen Neovim asks nobody, and takes the default.
    before = f"""
        vim.fn.confirm = function(text) _G.asked = text return {choice} end
        local system = vim.system
        _G.is_forced = false
        vim.system = function(cmd, ...)
          _G.is_forced = _G.is_forced or cmd[#cmd] == "--force"
          return system(cmd, ...)
        end
    """
    results = {"foregram.checkModel": {"ok": True}, "foregram.hostUse": use}
    editor = start(before=before, results=results)
    until_running(editor)
    editor.type(":Foregram model 1.5b<CR>")
    editor.until(lambda: editor.lua("return _G.asked ~= nil"), "the question")
    assert editor.lua("return _G.asked") == question
    assert editor.lua("return _G.is_forced") == (choice == 1)
    if choice == 1:
        until(lambda: models(tmp_path) == [None, "1.5b"], "the server's second start")
        assert editor.said()[0].startswith("foregram: 1.5b until Neovim ends;")
    else:
        round_trips(editor)
        assert models(tmp_path) == [None]


def test_the_help_is_found_with_the_folder_on_the_path(start):
    editor = start()
    editor.type(":help foregram<CR>")
    editor.until(lambda: "Code completion from your own model" in editor.text(), "the help")


def test_the_tags_of_the_help_are_those_that_neovim_makes(start, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(PLUGIN / "doc", copy)
    (copy / "tags").unlink()
    start().lua("vim.cmd.helptags(...)", str(copy))
    assert (copy / "tags").read_text() == (PLUGIN / "doc/tags").read_text()


def test_a_folder_that_is_read_only_changes_nothing(start, tmp_path):
    copy = tmp_path / "plugin"
    shutil.copytree(PLUGIN, copy)
    for path in [copy, *copy.rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    editor = start(before=f"vim.opt.rtp:remove('{PLUGIN}') vim.opt.rtp:append('{copy}')")
    editor.type(":help foregram-keys<CR>")
    editor.until(lambda: "KEYS" in editor.text().upper(), "the help")
    assert Path(editor.lua("return vim.api.nvim_buf_get_name(0)")) == copy / "doc/foregram.txt"
    for path in [copy, *copy.rglob("*")]:
        path.chmod(0o755)
