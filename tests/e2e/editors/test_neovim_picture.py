"""The README's pictures of Neovim: a terminal with ghost text, and one with a next edit, as SVG."""

import io
import json
import os
import re
from contextlib import contextmanager
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

NEXT = "textDocument/copilotInlineEdit"
ACCEPTED = "github.copilot.didAcceptNextEditSuggestionItem"
LEFT = '''def total_price(items):
    """The price of all items."""
    prices = (item.price for item in items)
    counts = (item.count for item in items)
    return sum(map(mul, prices, counts))
'''

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


@contextmanager
def neovim_terminal(environ, folder, text, command, height):
    """A terminal with Neovim on a file with a text."""
    init, file = folder / "init.lua", folder / "inventory.py"
    init.write_text(INIT)
    file.write_text(text)
    options = json.dumps({"cmd": [*map(str, command), "lsp"], "ghost_text": "own"})
    ours = {"PLUGIN": str(PLUGIN), "OPTIONS": options}
    start = ["env", "TERM=screen-256color", program("0.12"), "--clean", "-n", "-i", "NONE"]
    with terminal(
        part("tmux"), Path(environ["HOME"]), *start, "-u", init, file,
        environ=environ | ours, size=(72, height),
    ) as shown:  # fmt: skip
        yield shown


def save(captured, name, tmp_path):
    """Draw a picture, for the README where that is wanted; return it with plain spaces."""
    folder = PLUGIN / "images" if os.environ.get("EDITOR_PICTURES") == "1" else tmp_path
    picture = to_svg(captured, title="inventory.py", width=72)
    assert "http" not in picture.replace("http://www.w3.org/", "")
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(picture)
    return picture.replace("&#160;", " ")


def test_a_terminal_shows_the_ghost_text_dimmed(environ, tmp_path):
    with neovim_terminal(environ, tmp_path, BEGUN, [COMMAND], 21) as shown:
        shown.until(lambda: "foregram" in shown.screen and "off" not in shown.screen, "a host")
        shown.keys("G", "o")
        shown.type("for item in it")
        shown.until(
            lambda: "item.weight" in shown.screen and "foregram …" not in shown.screen, "ghost text"
        )
        captured = shown.drawn
    written, ghost = colours_of(captured, "total_price"), colours_of(captured, "item.weight")
    assert ghost != written
    assert "item.weight" in save(captured, "ghost-text.svg", tmp_path)


def test_a_terminal_shows_a_next_edit_in_its_place(hostless, script, tmp_path):
    """The parameter has been renamed: what uses it is struck, and what comes stands beside it."""
    where = {"start": {"line": 2, "character": 0}, "end": {"line": 5, "character": 0}}
    text = LEFT.replace("items", "shelf").partition("\n")[2].partition("\n")[2]
    script.behaves(commands=[ACCEPTED])
    command = {"title": "", "command": ACCEPTED, "arguments": ["one"]}
    script.answers(NEXT, {"edits": [{"range": where, "text": text, "command": command}]})
    script.status("ready on cpu")
    with neovim_terminal(hostless, tmp_path, LEFT, script.command, 11) as shown:
        shown.until(lambda: script.heard("textDocument/didOpen"), "the server")
        shown.keys("f", "(", "l", "c", "w")
        shown.type("shelf")
        shown.keys("Escape")
        shown.until(lambda: "itemsshelf" in shown.screen, "the edit")
        captured = shown.drawn
    [line, *_] = [line for line in captured.splitlines() if "item.price" in line]
    assert colours_of(line, "items") != colours_of(line, "shelf")
    picture = save(captured, "next-edit.svg", tmp_path)
    assert "shelf" in picture
    assert "Tab&gt;: line 3" in picture
