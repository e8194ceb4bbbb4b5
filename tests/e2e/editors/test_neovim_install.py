"""Each line of the README installs the plugin from a clone, with the real manager in an empty home.

The managers are checkouts in EDITORS_FOLDER, as `lazy.nvim` and `mini.deps`; `make test-editors`
fetches them. The lines' address is that of a repository of the files that are here.
"""

import re
import subprocess
from pathlib import Path

import pytest

from tests.support.editor_home import COMMAND
from tests.support.editor_parts import part
from tests.support.neovim import PLUGIN, WAYS, bare_neovim
from tests.support.sources import BEGUN

ROOT = Path(__file__).parents[3]
VERSIONS = [version for version, _ in WAYS]
EVERY_VERSION = pytest.mark.parametrize("version", VERSIONS)
CELL = r"^\| %s[^|]*\| `(.*)` \|$"
CLIENTS = "return #vim.lsp.get_clients({ name = 'foregram' })"
SETUP = "require('foregram').setup()"
ENABLE = "vim.lsp.enable('foregram')"


def line_for(manager):
    [line] = re.findall(CELL % re.escape(manager), (PLUGIN / "README.md").read_text(), re.M)
    return line


def path(folder):
    return f"vim.opt.rtp:prepend('{folder}')\n"


def lazy():
    setup = f"require('lazy').setup({{ {line_for('lazy.nvim')} }})"
    return path(part("lazy.nvim").parents[2]) + setup


def mini():
    setup = f"require('mini.deps').setup()\n{line_for('mini.deps')}"
    return path(part("mini.deps").parents[2]) + setup


def pack():
    return line_for("vim.pack")


def git(*words):
    command = ["git", *map(str, words)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def changes(clone):
    return git("-C", clone, "status", "--porcelain")


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    """A repository of this checkout's files, with what is not committed."""
    place = tmp_path_factory.mktemp("remote") / "foregram"
    git("init", "-q", "--bare", "-b", "main", place)
    there = (f"--git-dir={place}", f"--work-tree={ROOT}")
    git(*there, "add", "--all")
    git(*there, "-c", "user.name=foregram", "-c", "user.email=", "commit", "-q", "-m", "it")
    return place


@pytest.fixture
def home(hostless, script, tmp_path):
    """An empty home, with a scripted server as `foregram` on the path."""
    script.behaves(line="total = 1 + 1")
    script.status("Tiny on cpu", model="Tiny")
    program = tmp_path / "bin/foregram"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {" ".join(script.command)} "$@"\n')
    program.chmod(0o755)
    return hostless | {"PATH": f"{program.parent}:{hostless['PATH']}"}


@pytest.fixture
def start(home, tmp_path):
    """Starts a Neovim with its own folders on a Python file; it must find the address here."""

    def started(version, init, environ=home, text="total = 1\n"):
        (tmp_path / "a.py").write_text(text)
        folders = tmp_path / "xdg"
        return bare_neovim(version, environ, folders, init, tmp_path / "a.py", is_clean=False)

    return started


@pytest.fixture
def address(home, repository):
    """The address of the README leads to the repository."""
    url, place = "https://github.com/foregram/foregram", Path(home["HOME"]) / ".gitconfig"
    rule = f'[url "file://{repository}"]\n' + f"insteadOf = {url}\ninsteadOf = {url}.git\n"
    place.write_text(rule)


def completes(editor):
    editor.until(lambda: editor.lua(CLIENTS) == 1, "the server")
    editor.type("ototal =")
    return editor.until_ghost() == " 1 + 1"


MANAGED = [(make, version) for version in VERSIONS for make in (lazy, mini)] + [(pack, "0.12")]


@pytest.mark.parametrize(("manager", "version"), MANAGED)
def test_a_line_for_a_manager_installs_and_starts_the_plugin(
    manager, version, address, start, tmp_path
):
    with start(version, manager()) as editor:
        assert completes(editor)
        assert editor.lua("return vim.fn.exists(':Foregram')") == 2
        assert editor.lua("return vim.fn.getcompletion('foregram-keys', 'help')")
        [found] = editor.lua("return vim.api.nvim_get_runtime_file('lua/foregram/init.lua', true)")
    clone = Path(found).parents[2]
    assert clone.is_relative_to(tmp_path / "xdg/data")
    assert changes(clone) == "", "a manager updates no clone that was changed"


@EVERY_VERSION
def test_a_clone_on_the_runtime_path_is_enough(version, repository, start, tmp_path):
    git("clone", "-q", repository, tmp_path / "clone")
    line = line_for("no manager").replace("/path/to/foregram", str(tmp_path / "clone"))
    with start(version, line) as editor:
        assert completes(editor)


HEAD = re.sub("^--- ?", "", (PLUGIN / "lsp/foregram.lua").read_text(), flags=re.M)
ALONE, IN_MENU = re.findall(r"```lua\n(.*?)```", HEAD, re.S)


def test_neovim_alone_shows_and_accepts_what_the_real_server_suggests(environ, start):
    assert ALONE in (PLUGIN / "README.md").read_text().replace('"', "'")
    path_there = f"{COMMAND.parent}:{environ['PATH']}"
    with start("0.12", path(ROOT) + ALONE, environ | {"PATH": path_there}, BEGUN) as editor:
        editor.until(lambda: editor.lua(CLIENTS) == 1, "the server")
        editor.type("Gofor item in it")
        ghost = editor.until_ghost()
        editor.type("<Tab>")
        editor.until_text(BEGUN + "    for item in it" + ghost)
        assert editor.lua("return package.loaded.foregram == nil")
        editor.type("<Esc>:checkhealth foregram<CR>")
        editor.until(lambda: "OK `vim.lsp.enable('foregram')`" in editor.text(), "the report")
        assert "ERROR" not in editor.text()
        assert "turns Neovim's ghost text on" not in editor.text()


def test_neovim_011_asks_the_server_for_entries_of_its_menu(start, script):
    with start("0.11", path(ROOT) + IN_MENU) as editor:
        editor.until(lambda: editor.lua(CLIENTS) == 1, "the server")
    [told] = script.heard("initialize")
    assert told["initializationOptions"] == {"foregram": {"completion_fallback": True}}


BOTH = [f"{ENABLE}\n{SETUP}", f"{SETUP}\n{ENABLE}"]


@EVERY_VERSION
@pytest.mark.parametrize("init", BOTH, ids=["enabled-first", "set-up-first"])
def test_enabled_and_set_up_there_is_one_server(init, version, start, script):
    with start(version, path(ROOT) + f"{init}") as editor:
        assert completes(editor)
        editor.lua("vim.api.nvim_exec_autocmds('FileType', { buffer = 0 })")
        assert editor.lua(CLIENTS) == 1
        assert script.num_starts == 1


@EVERY_VERSION
@pytest.mark.parametrize("is_ready", [True, False], ids=["ready", "starting"])
def test_set_up_later_the_plugin_replaces_the_server_that_was_enabled(
    is_ready, version, start, script
):
    with start(version, path(ROOT) + f"{ENABLE}") as editor:
        editor.until(lambda: script.num_starts == 1, "the server")
        if is_ready:
            editor.until(lambda: editor.lua(CLIENTS) == 1, "its answer")
        editor.lua(SETUP)
        editor.until(lambda: script.num_starts == 2, "the plugin's server")
        editor.until(lambda: len(script.processes) == 1, "the end of the other one")
        assert completes(editor)
        assert editor.lua("return require('foregram.client').get() ~= nil")


FIRST = "run `uv tool install foregram` and `foregram setup` in a terminal"


@EVERY_VERSION
def test_without_the_program_a_sentence_and_the_health_say_what_to_run(version, start, hostless):
    nowhere = hostless | {"PATH": "/nowhere"}
    with start(version, path(ROOT) + f"{SETUP}", nowhere) as editor:
        editor.until(editor.said, "the sentence")
        sentence = f"`foregram` was not found on your PATH: {FIRST}, then restart Neovim"
        assert editor.said() == [f"foregram: {sentence}"]
        editor.type(":checkhealth foregram<CR>")
        editor.until(lambda: f"ERROR {sentence}" in editor.text(), "the report")


def test_without_a_model_a_sentence_and_the_health_lead_to_setup(start, script):
    remedy = {"action": "chooseModel", "title": "Choose Another Model"}
    script.status("no model is here", "Error", state="failed", remedy=remedy)
    with start("0.12", path(ROOT) + f"{SETUP}") as editor:
        editor.until(editor.said, "the sentence")
        [said] = editor.said()
        assert said.startswith("foregram: no model is here; `foregram setup` in a terminal")
        editor.type(":checkhealth foregram<CR>")
        editor.until(lambda: "ERROR no model is here" in editor.text(), "the report")
        assert "Choose Another Model: `foregram setup` in a terminal" in editor.text()
