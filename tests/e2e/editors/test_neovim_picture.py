"""The README's picture of Neovim: a terminal with real ghost text, drawn as an SVG."""

import io
import json
import os
import re
from pathlib import Path

from rich.ansi import AnsiDecoder
from rich.console import Console
from rich.terminal_theme import TerminalTheme

from tests.support.editor_home import COMMAND
from tests.support.editor_parts import part
from tests.support.neovim import PLUGIN, program
from tests.support.sources import BEGUN
from tests.support.terminal import terminal

INIT = """
vim.o.termguicolors, vim.o.background, vim.o.laststatus = true, "dark", 2
vim.opt.fillchars = { eob = " " }
vim.o.number, vim.o.showmode, vim.o.ruler, vim.o.showcmd = true, false, false, false
vim.o.statusline = " %t%=%{v:lua.require'foregram'.status()} "
vim.cmd.syntax("on")
vim.opt.rtp:prepend(vim.env.PLUGIN)
require("foregram").setup(vim.json.decode(vim.env.OPTIONS))
"""

# The colours of Neovim's own dark scheme around the text, and quiet ones in it.
THEME = TerminalTheme(
    (20, 22, 27),
    (224, 226, 234),
    [
        (20, 22, 27),
        (255, 192, 185),
        (179, 246, 192),
        (252, 224, 148),
        (166, 219, 255),
        (255, 202, 255),
        (140, 248, 247),
        (224, 226, 234),
    ],
)
_ELSEWHERE = re.compile(r"@font-face \{.*?\}\s*|<!--.*?-->\s*", re.DOTALL)


def to_svg(captured: str, *, title: str, width: int) -> str:
    """Draw the output of `tmux capture-pane -p -e` without links to other places."""
    console = Console(record=True, width=width, file=io.StringIO(), color_system="truecolor")
    for text in AnsiDecoder().decode(captured.rstrip("\n")):
        text.pad_right(max(0, width - text.cell_len))
        console.print(text, no_wrap=True, crop=True)
    picture = console.export_svg(title=title, theme=THEME, unique_id="foregram")
    return _ELSEWHERE.sub("", picture).replace("Fira Code", "DejaVu Sans Mono")


def colours_of(captured: str, words: str) -> str:
    line = next(line for line in captured.splitlines() if words in line)
    return line.partition(words)[0].rpartition("\x1b[")[2].partition("m")[0]


def test_a_terminal_shows_the_ghost_text_dimmed(environ, tmp_path):
    folder = PLUGIN / "images" if os.environ.get("EDITOR_PICTURES") == "1" else tmp_path
    init, file = tmp_path / "init.lua", tmp_path / "inventory.py"
    init.write_text(INIT)
    file.write_text(BEGUN)
    options = json.dumps({"cmd": [str(COMMAND), "lsp"], "ghost_text": "own"})
    ours = {"PLUGIN": str(PLUGIN), "OPTIONS": options}
    command = ["env", "TERM=screen-256color", program("0.12"), "--clean", "-n", "-i", "NONE"]
    with terminal(
        part("tmux"), Path(environ["HOME"]), *command, "-u", init, file,
        environ=environ | ours, size=(72, 21),
    ) as shown:  # fmt: skip
        shown.until(lambda: "foregram" in shown.screen and "off" not in shown.screen, "a host")
        shown.keys("G", "o")
        shown.type("for item in it")
        shown.until(
            lambda: "item.weight" in shown.screen and "foregram …" not in shown.screen, "ghost text"
        )
        captured = shown.drawn
    written, ghost = colours_of(captured, "total_price"), colours_of(captured, "item.weight")
    assert ghost != written
    picture = to_svg(captured, title="inventory.py", width=72)
    assert "item.weight" in picture.replace("&#160;", " ")
    assert "http" not in picture.replace("http://www.w3.org/", "")
    folder.mkdir(exist_ok=True)
    (folder / "ghost-text.svg").write_text(picture)
