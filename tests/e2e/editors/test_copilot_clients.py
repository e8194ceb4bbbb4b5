"""Copilot's clients, unchanged, show the next edit of our server, apply it, and tell of it."""

import json
from pathlib import Path

import pytest

from engine.request import EditOutcome
from tests.support.edit_engine import EditEngine, served_edits
from tests.support.editor_home import COMMAND, feedback
from tests.support.editor_parts import part
from tests.support.emacs import Emacs, emacs
from tests.support.neovim import bare_neovim
from tests.support.polling import until

SOURCE = "def area(width, h):\n    return width * h\n\n\nprint('👍', area(1, 2))\n"
RENAMED = SOURCE.replace("width,", "breadth,")
MENDED = RENAMED.replace("width *", "breadth *")
RENAME = EditOutcome(1, 2, ("    return breadth * h",), probability=0.9)
NOTHING = EditOutcome(refusal="no_change")
LATE_S = 30.0

# What a client has drawn with marks of its own, in any namespace.
DRAWN = """
local found = {}
for _, namespace in pairs(vim.api.nvim_get_namespaces()) do
  for _, mark in ipairs(vim.api.nvim_buf_get_extmarks(0, namespace, 0, -1, { details = true })) do
    for _, chunk in ipairs(mark[4].virt_text or {}) do found[#found + 1] = chunk[1] end
    for _, line in ipairs(mark[4].virt_lines or {}) do
      for _, chunk in ipairs(line) do found[#found + 1] = chunk[1] end
    end
  end
end
return table.concat(found)
"""
# Whether the server knows the buffer: it has answered since that was opened.
KNOWS = """
local client = vim.lsp.get_clients({ bufnr = 0 })[1]
local why = { command = "foregram.why" }
return client ~= nil and client.initialized
  and client:request_sync("workspace/executeCommand", why, 20000) ~= nil
"""
PLACE = "return { vim.api.nvim_win_get_cursor(0), vim.b.changedtick }"
SIDEKICK = """
require("sidekick").setup({})
vim.lsp.config("copilot", { cmd = { FOREGRAM, "lsp" } })
vim.lsp.enable("copilot")
vim.keymap.set("n", "<Tab>", function() require("sidekick").nes_jump_or_apply() end)
"""
COPILOT_LSP = """
vim.lsp.config("copilot_ls", { cmd = { FOREGRAM, "lsp" } })
vim.lsp.enable("copilot_ls")
vim.keymap.set("n", "<Tab>", function()
  local nes = require("copilot-lsp.nes")
  return nes.walk_cursor_start_edit() or nes.apply_pending_nes()
end)
"""
COPILOT_LUA = """
require("copilot").setup({
  server = { type = "binary", custom_server_filepath = FOREGRAM },
  server_opts_overrides = { cmd = { FOREGRAM, "lsp" } },
  nes = { enabled = true, auto_trigger = true, keymap = { accept_and_goto = "<Tab>" } },
  suggestion = { enabled = false },
  panel = { enabled = false },
})
"""
COPILOT_EL = """
(add-to-list 'load-path "{folder}")
(setq native-comp-enable-subr-trampolines nil)  ; this Emacs has no compiler beside it
(setq copilot-server-executable "{command}" copilot-server-args '("lsp"))
(require 'copilot-nes)
(add-hook 'python-mode-hook #'copilot-mode)
(add-hook 'python-mode-hook #'copilot-nes-mode)
"""


class RenamingEngine(EditEngine):
    """Carries on the rename of the function's parameter, and nothing else."""

    def answer(self, request):
        return RENAME if request.prefix + request.suffix == RENAMED else NOTHING


@pytest.fixture
def engine(hostless):
    engine = RenamingEngine(NOTHING)
    with served_edits(engine, hostless):
        yield engine


@pytest.fixture
def file(tmp_path):
    (tmp_path / ".git").mkdir()
    file = tmp_path / "area.py"
    file.write_text(SOURCE)
    return file


def told(environ, kind):
    until(lambda: feedback(environ, kind) == 1, f"the host hears `{kind}`", limit_s=LATE_S)


def clients(version, environ, tmp_path, file, names, script):
    roots = [part(name).parents[2] for name in names]
    path = "".join(f"vim.opt.rtp:append('{root}')\n" for root in roots)
    given = f"FOREGRAM = {json.dumps(str(COMMAND))}\n"
    # `--clean` leaves a plugin's own start-up files to the plugin manager.
    load = "".join(f"vim.cmd.runtime('plugin/{name}.lua')\n" for name in ("copilot-lsp", "copilot"))
    return bare_neovim(version, environ, tmp_path / "home", path + given + load + script, file)


def press_tab(editor):
    """Go to the edit where the cursor is elsewhere, else apply it."""
    before = editor.lua(PLACE)
    editor.type("<Tab>")
    editor.until(lambda: editor.lua(PLACE) != before, "a jump or the edit")


@pytest.mark.parametrize(
    ("version", "names", "script", "kind"),
    [
        # On 0.11 it takes each answer for one of a cancelled request, whichever the server.
        ("0.12", ("sidekick",), SIDEKICK, "accepted"),
        ("0.11", ("copilot-lsp",), COPILOT_LSP, "shown"),
        ("0.12", ("copilot-lsp",), COPILOT_LSP, "shown"),
        ("0.12", ("copilot-lua", "copilot-lsp"), COPILOT_LUA, "shown"),
    ],
    ids=["sidekick", "copilot-lsp-0.11", "copilot-lsp", "copilot-lua"],
)
def test_a_client_in_neovim_shows_the_next_edit_and_applies_it(
    hostless, engine, tmp_path, file, version, names, script, kind
):
    with clients(version, hostless, tmp_path, file, names, script) as editor:
        editor.until(lambda: editor.lua(KNOWS), "the server", LATE_S)
        editor.type("/width<CR>cwbreadth<Esc>")
        editor.until(lambda: engine.num_asked, "the question", LATE_S)
        editor.until(lambda: "breadth" in editor.lua(DRAWN), "the edit on the screen", LATE_S)
        press_tab(editor)
        if editor.text() != MENDED.rstrip("\n"):
            press_tab(editor)
        editor.until_text(MENDED.rstrip("\n"))
        told(hostless, kind)
        editor.type("u")
        editor.until_text(RENAMED.rstrip("\n"))


def overlays(shown: Emacs) -> str:
    form = (
        '(mapconcat (lambda (one) (or (overlay-get one \'after-string) "")) copilot-nes--overlays)'
    )
    return str(shown.lisp(f"(substring-no-properties {form})"))


def test_copilot_el_shows_the_next_edit_and_applies_it(hostless, engine, file):
    home = Path(hostless["HOME"]) / "emacs-home"
    home.mkdir(0o700)
    init = COPILOT_EL.format(folder=part("copilot-el").parent, command=COMMAND)
    with emacs(home, init, file, environ=hostless, name="emacs-30") as shown:
        shown.until("(bound-and-true-p copilot-nes-mode)")
        shown.does("""(copilot--request 'workspace/executeCommand '(:command "foregram.why"))""")
        shown.does('(progn (search-forward "width") (replace-match "breadth"))')
        shown.terminal.until(lambda: "breadth" in overlays(shown), "the edit on the screen")
        for _ in range(2):
            shown.terminal.keys("Tab")
        shown.terminal.until(lambda: shown.text == MENDED, "the edit in the text")
        told(hostless, "accepted")
