"""A real terminal, tmux, for programs that draw on one."""

import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.polling import until

LIMIT_S = 90.0  # seconds; the model shares the cores with other tests


class Terminal:
    def __init__(self, tmux: Path, socket: Path) -> None:
        self._tmux = (tmux, "-S", socket)

    def keys(self, *names: str) -> None:
        """Press keys, by tmux's names."""
        output(*self._tmux, "send-keys", *names)

    def type(self, text: str) -> None:
        output(*self._tmux, "send-keys", "-l", "--", text)

    @property
    def screen(self) -> str:
        return output(*self._tmux, "capture-pane", "-p")

    @property
    def drawn(self) -> str:
        """The screen with its colour escapes."""
        return output(*self._tmux, "capture-pane", "-p", "-e")

    def until(self, condition: Callable[[], Any], wanted: str, *, limit_s: float = LIMIT_S) -> Any:
        """Return the condition's value once it is true; a failure shows the screen."""
        return until(condition, lambda: f"{wanted}; it shows\n{self.screen}", limit_s=limit_s)

    def shows(self, text: str, *, limit_s: float = LIMIT_S) -> str:
        self.until(lambda: text in self.screen, text, limit_s=limit_s)
        return self.screen


@contextmanager
def terminal(
    tmux: Path,
    home: Path,
    *command: object,
    environ: dict[str, str],
    size: tuple[int, int] = (140, 30),
) -> Iterator[Terminal]:
    """Start a program in a terminal of its own, and end it with the block."""
    socket, (columns, rows) = home / "tmux", size
    start = ("new-session", "-d", "-x", columns, "-y", rows, "--", *command)
    output(tmux, "-S", socket, "-f", "/dev/null", *start, environ=environ)
    try:
        yield Terminal(tmux, socket)
    finally:
        output(tmux, "-S", socket, "kill-server")


def output(*command: object, environ: dict[str, str] | None = None) -> str:
    words = [str(word) for word in command]
    done = subprocess.run(words, env=environ, check=True, text=True, stdout=subprocess.PIPE)
    return done.stdout
