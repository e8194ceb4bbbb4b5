"""Emacs with lsp-mode and our package, driven in a terminal."""

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from lsp_server.reasons import Reason
from tests.support import polling
from tests.support.editor_home import COMMAND, feedback
from tests.support.editor_parts import part
from tests.support.emacs import GhostText, emacs, lsp_mode_init
from tests.support.sources import SHOP

HEAD = "def average_price(items):"
Open = Callable[..., GhostText]


@pytest.fixture
def opened(environ, shop) -> Iterator[Open]:
    with ExitStack() as stack:

        def open_file(text: str = SHOP, *, settings: str = "()", newline: str = "\n") -> GhostText:
            file, home = shop / "inventory.py", shop.parent
            file.write_text(text, newline=newline)
            init = lsp_mode_init(part("lsp-mode"), COMMAND, home, settings)
            shown = stack.enter_context(emacs(home, init, file, environ=environ))
            shown.until("(bound-and-true-p lsp-inline-completion-mode)")
            shown.terminal.keys("M->")
            return GhostText(shown)

        yield open_file


def run(ghost: GhostText, command: str) -> None:
    ghost.emacs.terminal.keys("M-x")
    ghost.emacs.terminal.type(command)
    ghost.emacs.terminal.keys("Enter")


def save(ghost: GhostText, file: Path) -> str:
    ghost.emacs.terminal.keys("C-x", "C-s")
    ghost.emacs.terminal.shows("Wrote")
    return file.read_bytes().decode()


def test_ghost_text_comes_by_itself_is_drawn_and_what_tab_takes_is_what_was_shown(
    environ, shop, opened
):
    ghost = opened()
    before = feedback(environ, "accepted"), feedback(environ, "shown")
    terminal = ghost.emacs.terminal
    terminal.type(HEAD + "\n")
    text = ghost.comes()
    assert text in ghost.drawn
    assert all(line.strip() in terminal.screen for line in text.splitlines())
    typed = ghost.emacs.text
    terminal.keys("Tab")
    ghost.goes()
    assert ghost.emacs.text == typed + text
    assert save(ghost, shop / "inventory.py") == f"{typed}{text}\n"  # Emacs ends the last line
    terminal.type("\n")  # the next request tells the host
    polling.until(lambda: feedback(environ, "accepted") > before[0], "the host hears of the accept")
    counted = feedback(environ, "accepted"), feedback(environ, "shown")
    assert counted == (before[0] + 1, before[1] + 1)


def test_typing_along_and_another_key_take_nothing_and_keep_tab_for_the_mode(opened):
    ghost = opened(SHOP + HEAD + "\n    total = 0\n    for item in items:\n")
    terminal = ghost.emacs.terminal
    terminal.type("        total")
    text = ghost.comes()
    terminal.type(text[:3])
    ghost.emacs.until(f'(looking-back "total{re.escape(text[:3])}" nil)'.replace("\\", "\\\\"))
    assert ghost.comes() == text[3:]
    terminal.keys("C-c", "C-k")  # C-g would also interrupt this test's Lisp
    ghost.goes()
    typed = ghost.emacs.text
    terminal.keys("Tab")
    ghost.emacs.until("(eq last-command 'indent-for-tab-command)")
    assert ghost.emacs.text.split() == typed.split()


def test_an_explicit_request_gives_candidates_to_choose_from(opened):
    # The host writes several candidates only if they are quick. With fewer tokens, they would end
    # inside a docstring.
    ghost = opened(settings="(:maxTokens 14)")
    ghost.emacs.does("(lsp-inline-completion-mode -1)")
    ghost.emacs.terminal.type(HEAD + "\n")

    def several() -> bool:
        run(ghost, "foregram-complete")
        return bool(ghost.comes()) and ghost.num_candidates > 1

    ghost.emacs.terminal.until(several, "candidates")
    first = ghost.comes()
    ghost.emacs.terminal.keys("C-n")
    ghost.emacs.until("(= lsp-inline-completion--current 1)")
    second = ghost.comes()
    assert second != first
    typed = ghost.emacs.text
    ghost.emacs.terminal.keys("Tab")
    ghost.goes()
    assert ghost.emacs.text == typed + second


def test_text_beyond_the_basic_plane_and_windows_line_ends_stay_whole(shop, opened):
    ghost = opened(SHOP, newline="\r\n")
    ghost.emacs.terminal.type("NAMES = {'\N{SLOT MACHINE}': total_price}\n\n\n" + HEAD + "\n")
    text = ghost.comes()
    typed = ghost.emacs.text
    ghost.emacs.terminal.keys("Tab")
    ghost.goes()
    saved = save(ghost, shop / "inventory.py")
    assert saved == f"{typed}{text}\n".replace("\n", "\r\n")


def test_a_language_that_is_switched_off_shows_nothing_and_says_why(opened):
    ghost = opened(settings="(:languages (:python :json-false))")
    ghost.emacs.terminal.type(HEAD + "\n")
    run(ghost, "foregram-complete")
    ghost.emacs.terminal.shows("No Suggestions")
    assert not ghost.is_shown
    run(ghost, "foregram-why")
    ghost.emacs.terminal.shows(f"foregram: {Reason.DISABLED_LANGUAGE.sentence}")
    ghost.emacs.terminal.shows("foregram:Inactive")  # in the mode line


def test_settings_changed_while_the_server_runs_hold_at_once(opened):
    ghost = opened(settings="(:enable :json-false :maxTokens 16)")
    ghost.emacs.terminal.type(HEAD + "\n")
    run(ghost, "foregram-complete")
    ghost.emacs.terminal.shows("No Suggestions")
    ghost.emacs.does("(customize-set-variable 'foregram-settings '(:enable t :maxTokens 16))")
    run(ghost, "foregram-complete")
    assert ghost.comes()
