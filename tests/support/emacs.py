"""A real Emacs in a real terminal: keys go in through tmux, Lisp through emacsclient."""

import json
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

_LIMIT_S = 90.0  # the model shares the cores with other tests
_POLL_S = 0.05
_SIZE = ("-x", "140", "-y", "30")
_QUIET = """
(setq inhibit-startup-screen t make-backup-files nil auto-save-default nil
      create-lockfiles nil ring-bell-function #'ignore
      python-indent-guess-indent-offset nil
      server-socket-dir "{home}" server-name "emacs")
(server-start)
"""


class Programs(NamedTuple):
    """What an Emacs in a terminal takes."""

    tmux: Path
    emacs: Path
    client: Path


class Emacs:
    """One Emacs, its keys, its screen and its Lisp."""

    def __init__(self, terminal: "Terminal", client: Path, socket: Path) -> None:
        self.terminal = terminal
        self._client = (client, "--socket-name", socket)

    def lisp(self, form: str) -> Any:
        """The value of a form in the buffer on the screen, as JSON would have it."""
        inside = f"(with-current-buffer (window-buffer) {form})"
        printed = _output(*self._client, "--eval", f"(json-encode {inside})")
        return json.loads(json.loads(printed.replace("\n", "")))  # emacsclient breaks a long line

    def does(self, form: str) -> None:
        """Evaluate a form for its effect."""
        self.lisp(f"(progn {form} nil)")

    def until(self, form: str, *, limit_s: float = _LIMIT_S) -> Any:
        """The value of a form once it is neither nil nor false."""
        return self.terminal.until(lambda: self.lisp(form), form, limit_s=limit_s)

    @property
    def text(self) -> str:
        """The whole buffer."""
        return str(self.lisp("(buffer-substring-no-properties (point-min) (point-max))"))


class Terminal:
    """A terminal with one program in it."""

    def __init__(self, tmux: Path, socket: Path) -> None:
        self._tmux = (tmux, "-S", socket)

    def keys(self, *names: str) -> None:
        """Press keys, by tmux's names."""
        _output(*self._tmux, "send-keys", *names)

    def type(self, text: str) -> None:
        """Type a text, key by key."""
        _output(*self._tmux, "send-keys", "-l", text)

    @property
    def screen(self) -> str:
        """What the terminal shows."""
        return _output(*self._tmux, "capture-pane", "-p")

    def until(self, condition: Callable[[], Any], wanted: str, *, limit_s: float = _LIMIT_S) -> Any:
        """The condition's value once it holds; else a failure that shows the screen."""
        deadline = time.monotonic() + limit_s
        while not (value := condition()):
            if time.monotonic() > deadline:
                raise AssertionError(f"{wanted} did not come:\n{self.screen}")
            time.sleep(_POLL_S)
        return value

    def shows(self, text: str, *, limit_s: float = _LIMIT_S) -> str:
        """The screen once the text stands on it."""
        self.until(lambda: text in self.screen, text, limit_s=limit_s)
        return self.screen


@contextmanager
def terminal(
    tmux: Path, home: Path, *command: object, environ: dict[str, str]
) -> Iterator[Terminal]:
    """Start a program in a terminal of its own; its end is the program's."""
    socket = home / "tmux"
    start = ("new-session", "-d", *_SIZE, "--", *command)
    _output(tmux, "-S", socket, "-f", "/dev/null", *start, environ=environ)
    try:
        yield Terminal(tmux, socket)
    finally:
        _output(tmux, "-S", socket, "kill-server")


@contextmanager
def emacs(
    programs: Programs, home: Path, init: str, file: Path, *, environ: dict[str, str]
) -> Iterator[Emacs]:
    """Start Emacs on a file, with an init file of the test's own; `home` is ours alone."""
    start = home / "init.el"
    start.write_text(_QUIET.format(home=home) + init)
    command = (programs.emacs, "-nw", "-Q", "-l", start, file)
    with terminal(programs.tmux, home, *command, environ=environ) as shown:
        shown.until((home / "emacs").exists, "Emacs")
        yield Emacs(shown, programs.client, home / "emacs")


def _output(*command: object, environ: dict[str, str] | None = None) -> str:
    words = [str(word) for word in command]
    done = subprocess.run(words, env=environ, check=True, text=True, stdout=subprocess.PIPE)
    return done.stdout
