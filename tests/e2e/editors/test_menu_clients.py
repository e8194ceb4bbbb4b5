"""Editors without ghost text of their own, which show `textDocument/completion`: Helix, eglot."""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.support.editor_home import COMMAND
from tests.support.editor_parts import part
from tests.support.emacs import Emacs, emacs
from tests.support.sources import SHOP
from tests.support.terminal import Terminal, terminal

HEAD = "def average_price(items):\n"
LANGUAGES_TOML = """
[language-server.foregram]
command = "{command}"
args = ["lsp"]
timeout = 60
config = {{ foregram = {{ completion_fallback = true }} }}

[[language]]
name = "python"
language-servers = ["foregram"]
"""
INIT = """
(require 'eglot)
(add-to-list 'eglot-server-programs
             '(python-mode . ("{command}" "lsp" :initializationOptions
                              (:foregram (:completionFallback t)))))
(setq eglot-connect-timeout 60 jsonrpc-default-request-timeout 60)
(add-hook 'python-mode-hook #'eglot-ensure)
"""
PREVIEW = "(add-hook 'python-mode-hook #'completion-preview-mode)"
PREVIEWED = """
(and (bound-and-true-p completion-preview-active-mode)
     (substring-no-properties (overlay-get completion-preview--overlay 'after-string)))
"""
ANSWERS = """
(with-current-buffer (jsonrpc-events-buffer (eglot-current-server)) (buffer-string))
"""
READY = " on cpu"  # in the server's state once it has a host
OpenEmacs = Callable[..., Emacs]
OpenHelix = Callable[..., Terminal]


def offered(log: str) -> list[dict[str, Any]]:
    """Return the entries of all answers in a client's log, as edits."""
    answers = re.findall(r'\{"id": .*"isIncomplete".*\}', log)
    items = [item for answer in answers for item in json.loads(answer)["result"]["items"]]
    return [item["textEdit"] | {"label": item["label"]} for item in items]


@pytest.fixture
def file(shop: Path) -> Path:
    return shop / "inventory.py"


@pytest.fixture
def helix(environ, file) -> Iterator[OpenHelix]:
    home = file.parents[1]
    settings = home / "helix"
    settings.mkdir()
    (settings / "languages.toml").write_text(LANGUAGES_TOML.format(command=COMMAND))
    (settings / "config.toml").write_text("[editor]\ncompletion-trigger-len = 1\n")
    (home / "log").touch()
    with ExitStack() as stack:

        def open_file(text: str, newline: str = "\n") -> Terminal:
            file.write_text(text, newline=newline)
            command = part("helix"), "-v", "--log", home / "log", file
            ours = environ | {"XDG_CONFIG_HOME": str(home)}
            shown = stack.enter_context(terminal(part("tmux"), home, *command, environ=ours))
            shown.until(lambda: READY in (home / "log").read_text(), "a host")
            shown.keys("g", "e", "o")
            return shown

        yield open_file


@pytest.fixture
def eglot(environ, file) -> Iterator[OpenEmacs]:
    with ExitStack() as stack:

        def open_file(text: str, more: str = "") -> Emacs:
            file.write_text(text)
            init = INIT.format(command=COMMAND) + more
            started = emacs(file.parents[1], init, file, environ=environ, name="emacs-30")
            shown = stack.enter_context(started)
            shown.until("(and (bound-and-true-p eglot--managed-mode) t)")
            shown.terminal.until(lambda: READY in shown.lisp(ANSWERS), "a host")
            shown.terminal.keys("M->")
            return shown

        yield open_file


def taken_in_helix(shown: Terminal, file: Path) -> dict[str, Any]:
    log = file.parents[1] / "log"
    shown.until(lambda: offered(log.read_text()), "an entry")
    entry = offered(log.read_text())[-1]
    shown.shows(f"{entry['label']} text")  # the entry's kind
    shown.keys("Tab", "Enter", "Escape")
    shown.shows(" NOR ")  # Escape and a key right after it would be Alt and that key
    shown.type(":w")
    shown.keys("Enter")
    shown.shows("written")
    return entry


def test_helix_shows_the_entry_while_a_word_is_typed_and_inserts_it(helix, file):
    shown = helix(SHOP + HEAD + "    total = 0\n    for item in items:\n")
    before = file.read_text()
    shown.type("    total")
    entry = taken_in_helix(shown, file)
    assert entry["newText"].startswith("total")
    assert file.read_text() == f"{before}        {entry['newText']}\n"


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_helix_inserts_several_lines_as_they_are_in_the_line_ends_of_the_file(helix, file, newline):
    shown = helix(SHOP + HEAD + '    """The average price of all items."""\n', newline)
    before = file.read_bytes().decode()
    shown.keys("C-x")
    entry = taken_in_helix(shown, file)
    assert "\n" in entry["newText"]
    text = entry["newText"].replace("\r\n", "\n").replace("\n", newline)
    assert file.read_bytes().decode() == f"{before}    {text}{newline}"


def taken_in_emacs(shown: Emacs, key: str) -> dict[str, Any]:
    typed = shown.text
    shown.terminal.keys(key)
    shown.terminal.until(lambda: shown.text != typed, "an entry")
    shown.terminal.until(lambda: offered(shown.lisp(ANSWERS)), "its answer in the log")
    return offered(shown.lisp(ANSWERS))[-1]


def test_eglot_inserts_the_only_entry_at_once_with_all_its_lines(eglot, file):
    shown = eglot(SHOP)
    shown.terminal.type(HEAD.strip())
    shown.terminal.keys("Enter")
    shown.until('(looking-back ":\\n    " nil)')  # Emacs indents
    entry = taken_in_emacs(shown, "C-M-i")
    assert "\n" in entry["newText"]
    assert shown.text == SHOP + HEAD + "    " + entry["newText"]
    shown.terminal.keys("C-x", "C-s")
    shown.terminal.shows("Wrote")
    assert file.read_text() == shown.text


def test_eglot_replaces_the_typed_word_and_what_the_entry_repeats_after_the_cursor(eglot):
    shown = eglot(SHOP + "items = []\n")
    shown.terminal.type("print(total_)")
    shown.terminal.keys("C-b")
    entry = taken_in_emacs(shown, "C-M-i")
    assert entry["newText"].startswith("total_price(")
    start, end = (entry["range"][edge]["character"] for edge in ("start", "end"))
    line = "print(total_)"
    assert shown.text == SHOP + "items = []\n" + line[:start] + entry["newText"] + line[end:]


def test_the_preview_of_emacs_30_shows_the_entry_of_eglot_as_ghost_text(eglot):
    shown = eglot(SHOP + HEAD + "    total = 0\n    for item in items:\n", PREVIEW)
    shown.terminal.type("        total")
    ghost = shown.until(PREVIEWED)
    assert f"total{ghost}" in shown.terminal.screen
    typed = shown.text
    entry = taken_in_emacs(shown, "Tab")
    assert entry["label"] == f"total{ghost}"
    assert shown.text == typed.removesuffix("total") + entry["newText"]
