"""A real Emacs in a real terminal, with lsp-mode and our package if a test wants them.

Keys go in through tmux, Lisp through emacsclient.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.editor_parts import part
from tests.support.terminal import LIMIT_S, Terminal, output, terminal

_QUIET = """
(setq inhibit-startup-screen t make-backup-files nil auto-save-default nil
      create-lockfiles nil ring-bell-function #'ignore
      python-indent-guess-indent-offset nil
      server-socket-dir "{home}" server-name "emacs")
(server-start)
"""
PACKAGE = Path("editor_plugins/emacs/foregram.el").resolve()
_INIT = """
(dolist (folder (directory-files "{packages}" t "^[^.]"))
  (add-to-list 'load-path folder))
(add-to-list 'load-path "{ours}")
(load "lsp-mode-autoloads" nil t)  ; what package.el does for its packages
(setq lsp-session-file "{home}/session" lsp-client-packages nil lsp-auto-guess-root t
      lsp-enable-suggest-server-download nil lsp-enable-snippet nil
      lsp-response-timeout 60)  ; tests share their cores
(require 'foregram)
(setq foregram-command '("{command}" "lsp") foregram-settings '{settings})
(add-hook 'python-mode-hook #'lsp)
"""
_ITEM = "(elt lsp-inline-completion--items lsp-inline-completion--current)"
_IS_SHOWN = "(overlayp lsp-inline-completion--overlay)"
_DRAWN = """
(concat (substring-no-properties (overlay-get lsp-inline-completion--overlay 'display))
        (substring-no-properties (overlay-get lsp-inline-completion--overlay 'after-string)))
"""


class Emacs:
    def __init__(self, terminal: Terminal, client: Path, socket: Path) -> None:
        self.terminal = terminal
        self._client = (client, "--socket-name", socket)
        self._answer = socket.with_name("answer.json")

    def lisp(self, form: str) -> Any:
        """Return the value of a form in the buffer on the screen, as JSON would have it."""
        inside = f"(json-encode (with-current-buffer (window-buffer) {form}))"
        written = f'(with-temp-file "{self._answer}" (insert value))'
        # Through a file: emacsclient cuts a long value into pieces, sometimes inside an escape.
        keep = f"(let ((value {inside}) (coding-system-for-write 'utf-8)) {written} nil)"
        output(*self._client, "--eval", keep)
        return json.loads(self._answer.read_text("utf-8"))

    def does(self, form: str) -> None:
        self.lisp(f"(progn {form} nil)")

    def until(self, form: str, *, limit_s: float = LIMIT_S) -> Any:
        """Return the value of a form once it is neither nil nor false."""
        return self.terminal.until(lambda: self.lisp(form), form, limit_s=limit_s)

    @property
    def text(self) -> str:
        return str(self.lisp("(buffer-substring-no-properties (point-min) (point-max))"))


@contextmanager
def emacs(
    home: Path, init: str, file: Path, *, environ: dict[str, str], name: str = "emacs"
) -> Iterator[Emacs]:
    """Start this part's Emacs, with an init file of the test's own; `home` is ours alone."""
    client = part("emacs").with_name("emacsclient")
    start = home / "init.el"
    start.write_text(_QUIET.format(home=home) + init)
    command = (part(name), "-nw", "-Q", "-l", start, file)
    with terminal(part("tmux"), home, *command, environ=environ) as shown:
        shown.until((home / "emacs").exists, "Emacs")
        yield Emacs(shown, client, home / "emacs")


def lsp_mode_init(packages: Path, command: Path, home: Path, settings: str = "()") -> str:
    """Return an init file as a user would write it; `settings` is a property list."""
    return _INIT.format(
        packages=packages, ours=PACKAGE.parent, home=home, command=command, settings=settings
    )


class GhostText:
    def __init__(self, emacs: Emacs) -> None:
        self.emacs = emacs

    def comes(self) -> str:
        """Return the text of the item shown, once there is one."""
        return str(self.emacs.until(f"(and {_IS_SHOWN} (lsp-get {_ITEM} :insertText))"))

    def goes(self) -> None:
        self.emacs.until(f"(not {_IS_SHOWN})")

    @property
    def is_shown(self) -> bool:
        return bool(self.emacs.lisp(_IS_SHOWN))

    @property
    def drawn(self) -> str:
        return str(self.emacs.lisp(_DRAWN))

    @property
    def num_candidates(self) -> int:
        return int(self.emacs.lisp("(length lsp-inline-completion--items)"))
