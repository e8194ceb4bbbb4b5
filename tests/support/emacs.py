"""A real Emacs in a real terminal: keys go in through tmux, Lisp through emacsclient."""

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


class Emacs:
    """One Emacs, its keys, its screen and its Lisp."""

    def __init__(self, terminal: Terminal, client: Path, socket: Path) -> None:
        self.terminal = terminal
        self._client = (client, "--socket-name", socket)
        self._answer = socket.with_name("answer.json")

    def lisp(self, form: str) -> Any:
        """The value of a form in the buffer on the screen, as JSON would have it."""
        inside = f"(json-encode (with-current-buffer (window-buffer) {form}))"
        written = f'(with-temp-file "{self._answer}" (insert value))'
        # Through a file: emacsclient cuts a long value into pieces, at times inside an escape.
        keep = f"(let ((value {inside}) (coding-system-for-write 'utf-8)) {written} nil)"
        output(*self._client, "--eval", keep)
        return json.loads(self._answer.read_text("utf-8"))

    def does(self, form: str) -> None:
        """Evaluate a form for its effect."""
        self.lisp(f"(progn {form} nil)")

    def until(self, form: str, *, limit_s: float = LIMIT_S) -> Any:
        """The value of a form once it is neither nil nor false."""
        return self.terminal.until(lambda: self.lisp(form), form, limit_s=limit_s)

    @property
    def text(self) -> str:
        return str(self.lisp("(buffer-substring-no-properties (point-min) (point-max))"))


@contextmanager
def emacs(
    home: Path, init: str, file: Path, *, environ: dict[str, str], name: str = "emacs"
) -> Iterator[Emacs]:
    """Start the Emacs that is this part, with an init file of the test's own; `home` is ours alone."""
    client = part("emacs").with_name("emacsclient")
    start = home / "init.el"
    start.write_text(_QUIET.format(home=home) + init)
    command = (part(name), "-nw", "-Q", "-l", start, file)
    with terminal(part("tmux"), home, *command, environ=environ) as shown:
        shown.until((home / "emacs").exists, "Emacs")
        yield Emacs(shown, client, home / "emacs")
