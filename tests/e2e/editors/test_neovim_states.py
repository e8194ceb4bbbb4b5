"""Real Neovim's messages to its server, and the states that it shows."""

import shutil
from pathlib import Path

import pytest

from lsp_server.model_choice import offered_models
from tests.support.neovim import ALL_WAYS, PLUGIN
from tests.support.polling import until

INLINE = "textDocument/inlineCompletion"
SECRET = {"sentence": "the file may hold secrets", "age_s": 3}
DRAWN = pytest.mark.parametrize("start_neovim", ALL_WAYS, indirect=True, ids="-".join)


@pytest.fixture
def start(scripted_neovim):
    def started(text="total = 1\n", **given):
        editor = scripted_neovim(text, **given)
        running = "return require('foregram.client').get() ~= nil"
        editor.until(lambda: editor.lua(running), "the server")
        return editor

    return started


@pytest.fixture
def loading(start, script):
    """Neovim with a server that loads its model and answers nothing."""
    script.status("loading Tiny, 42 %", state="loading", busy=True, percentage=42)
    script.answers(INLINE, {"items": []})
    editor = start(line="total = 1 + 1")
    editor.until(lambda: editor.state().get("percent") == 42, "the loading")
    return editor


def becomes_ready(script):
    script.answers(INLINE, None)
    script.status("Tiny on cpu", model="Tiny")
    script.says("foregram/askAgain")


@DRAWN
def test_what_was_typed_while_the_model_loads_is_completed_when_it_is_ready(loading, script):
    assert loading.lua("return require('foregram').status()") == "foregram: 42 %"
    loading.type("ototal =")
    until(lambda: script.heard(INLINE), "a request in vain")
    loading.until_text("total = 1\ntotal =")
    assert not loading.ghost()
    becomes_ready(script)
    assert loading.until_ghost() == " 1 + 1"
    assert loading.lua("return require('foregram').status()") == "foregram"
    *_, asked = script.heard(INLINE)
    assert asked["position"] == {"line": 1, "character": 7}
    assert asked["context"] == {"triggerKind": 2}


@DRAWN
def test_nothing_is_asked_again_outside_of_insert_mode(loading, script):
    loading.type("ototal =<Esc>")
    loading.until_text("total = 1\ntotal =")
    round_trips(loading)
    num_asked = len(script.heard(INLINE))
    becomes_ready(script)
    loading.until(lambda: loading.state().get("state") == "ready", "the model")
    round_trips(loading)
    assert len(script.heard(INLINE)) == num_asked
    assert not loading.ghost()


def round_trips(editor):
    """Wait until the server's former messages are handled, and their replies have arrived."""
    editor.lua("""
        local client = require("foregram.client").get()
        for _ = 1, 2 do
          client:request_sync("workspace/executeCommand", { command = "nothing" }, 20000)
        end
    """)


def test_what_the_server_is_told_at_the_start_and_of_settings_and_files(start, script, tmp_path):
    editor = start(options={"settings": {"max_tokens": 7, "languages": {}}})
    [told] = script.heard("initialize")
    options = told["initializationOptions"]
    assert options["foregram"] == {"max_tokens": 7}
    assert options["editorInfo"]["name"] == "Neovim"
    assert options["editorPluginInfo"] == {"name": "foregram", "version": "0.1.0"}
    assert options["asksAgain"] is True
    assert "inlineCompletion" in told["capabilities"]["textDocument"]
    editor.type(":Foregram toggle<CR>:Foregram disable lua<CR>")
    changed = "workspace/didChangeConfiguration"
    until(lambda: len(script.heard(changed)) == 3, "the settings")
    assert script.heard(changed)[-1]["settings"]["foregram"] == {
        "max_tokens": 7,
        "enable": False,
        "languages": {"lua": False},
    }
    editor.type(f":edit {tmp_path}/b.py<CR>")
    until(
        lambda: [file_of(one) for one in script.heard("textDocument/didFocus")] == ["a.py", "b.py"],
        "it",
    )


def file_of(params):
    return Path(params["textDocument"]["uri"]).name


def test_a_server_that_was_just_started_is_starting_and_not_off(scripted_neovim):
    seen = "_G.first = { require('foregram').status(), require('foregram').state().message }"
    watch = f"vim.api.nvim_create_autocmd('VimEnter', {{ callback = function() {seen} end }})"
    editor = scripted_neovim(before=watch, silent_at="initialize")
    editor.until(lambda: editor.lua("return _G.first ~= nil"), "the first look")
    assert editor.lua("return _G.first") == ["foregram: starting", "starting"]
    editor.type(":Foregram why<CR>")
    editor.until(lambda: editor.text() == "The server is starting.", "the report")
    editor.type(":checkhealth foregram<CR>")
    editor.until(lambda: "the server is starting" in editor.text(), "the health")
    assert ":Foregram restart" not in editor.text()


def test_another_model_than_the_one_that_is_set_is_a_warning_that_says_what_helps(start, script):
    sentence = 'Tiny is running, but the settings ask for "Big"'
    remedy = {"action": "restart", "title": "Restart with Big"}
    script.status(sentence, "Warning", model="Tiny", configuredModel="Big", remedy=remedy)
    script.answers("foregram.why", {"answers": []})
    editor = start()
    editor.until(lambda: editor.state()["kind"] == "Warning", "the state")
    assert editor.lua("return require('foregram').status()") == "foregram: warning"
    editor.type(":Foregram<CR>")
    lines = f"Warning: {sentence}\nRestart with Big: `:Foregram model NAME`"
    editor.until(lambda: editor.text() == lines, "the report")
    editor.type(":Foregram why<CR>")
    editor.until(lambda: f"The state: {sentence}." in editor.text(), "the state")
    editor.type(":checkhealth foregram<CR>")
    editor.until(lambda: f"WARNING {sentence}" in editor.text(), "the warning")


def test_why_speaks_of_the_file_and_place_that_are_looked_at(start, script):
    told = {"now": SECRET, "answers": [{"sentence": "it is late", "age_s": 754, "line": 2}]}
    script.answers("foregram.why", told)
    editor = start()
    for _ in range(2):  # also from within the report
        editor.type(":Foregram why<CR>")
        editor.until(lambda: "12 min ago, line 2: it is late" in editor.text(), "the report")
    assert "Nothing is shown in a.py now: the file may hold secrets." in editor.text()
    until(lambda: len(script.heard("workspace/executeCommand")) == 2, "both questions")
    for asked in script.heard("workspace/executeCommand"):
        [place] = asked["arguments"]
        assert file_of(place) == "a.py"
        assert place["position"] == {"line": 0, "character": 0}


def test_all_reports_share_one_window(start, script):
    script.answers("foregram.why", {"now": SECRET, "answers": []})
    for command in ("logs", "doctor"):
        script.prints(command, f"the output of {command}\n")
    editor = start()
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


def test_what_was_saved_is_shown_and_forgotten_at_a_word(start, script):
    script.prints("saved", "2026-11-29: 5 keystrokes saved\n")
    editor = start()
    editor.type(":Foregram saved<CR>")
    editor.until(lambda: "5 keystrokes saved" in editor.text(), "the report")
    assert script.ran[-1] == "saved"
    editor.type(":Foregram saved all<CR>")
    editor.until(editor.said, "the sentence")
    assert editor.said() == ["foregram: say `:Foregram saved`, or `:Foregram saved reset`"]
    editor.type(":Foregram saved reset<CR>")
    editor.until(lambda: script.ran[-1] == "saved --reset", "the reset")


def models(script):
    options = [params["initializationOptions"] for params in script.heard("initialize")]
    return [one["foregram"].get("model") for one in options]


def test_a_wrong_model_name_is_refused_with_near_names(start, script):
    wrong = {"ok": False, "sentence": "there is no model `qwen9b`", "near": ["7b", "14b"]}
    script.answers("foregram.checkModel", wrong)
    editor = start()
    editor.type(":Foregram model qwen9b<CR>")
    editor.until(editor.said, "the sentence")
    assert editor.said() == ["foregram: there is no model `qwen9b`; near names: `7b`, `14b`"]
    assert models(script) == [None]


KNOWN = {"running": True, "model": "Tiny", "numOtherClients": 2}
ASKED = "2 other windows or editors use Tiny. It ends for all of them. Go on?"
UNSURE = "Other windows or editors may use the model that runs now. It ends for all of them. Go on?"


@pytest.mark.parametrize(
    ("use", "question", "choice"), [(KNOWN, ASKED, 2), (KNOWN, ASKED, 1), (None, UNSURE, 2)]
)
def test_a_host_that_others_use_ends_only_for_who_says_so(start, script, use, question, choice):
    # Without a screen, Neovim takes the default and does not ask.
    before = f"vim.fn.confirm = function(text) _G.asked = text return {choice} end"
    script.answers("foregram.checkModel", {"ok": True})
    script.answers("foregram.hostUse", use)
    editor = start(before=before)
    editor.type(":Foregram model 1.5b<CR>")
    editor.until(lambda: editor.lua("return _G.asked ~= nil"), "the question")
    assert editor.lua("return _G.asked") == question
    if choice == 1:
        until(lambda: models(script) == [None, "1.5b"], "the server's second start")
        assert editor.said()[0].startswith("foregram: 1.5b until Neovim ends;")
    else:
        round_trips(editor)
        assert models(script) == [None]
    assert any("--force" in words for words in script.ran) == (choice == 1)


def test_the_command_completes_its_subcommands_and_names_a_wrong_one(start, script):
    script.answers("foregram.models", offered_models())
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
    editor = start(encoding="utf-8", version="0.1.0")
    editor.type(":checkhealth foregram<CR>")
    editor.until(lambda: "server 0.1.0, positions in utf-8" in editor.text(), "the report")
    assert "ERROR" not in editor.text()


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
