"""The time from a key to ghost text, in VS Code and Neovim, on the offline model.

    python -m tests.e2e.editors.latency

`fresh` is a key at a place that nobody has completed yet, `along` a key that continues the ghost text
on the screen; ten of these a second. VS Code's times are read in its page, from the key's event to the
frame that shows the text; Neovim's are seen from outside, by looks that follow each other.
"""

import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from itertools import islice, takewhile
from pathlib import Path
from typing import Any

from playwright.sync_api import Page

from tests.support.editor_home import COMMAND, own_home, ready_host, user_cache
from tests.support.editor_parts import FOLDER
from tests.support.neovim import Neovim, neovim
from tests.support.vscode import chromium, foregram_extension, workbench
from tests.support.vscode_server import code_server
from tests.support.vscode_window import Window

NUM_ALONG = 8  # keys of each ghost text, or all if it is shorter
_KEY_S = 0.1  # from one key to the next
_LIMIT_MS = 10_000
_ALONG_SIGNS = " =_.,:+-*/"  # a bracket or a quote would bring its partner along
_NEOVIMS = (("0.11", "own"), ("0.12", "builtin"), ("0.12", "own"))
_FIELDS = (
    *("price", "weight", "height", "width", "depth", "volume", "rating", "discount"),
    *("tax", "margin", "cost", "profit", "age", "score", "length", "area"),
)


# Resolves with the milliseconds from the next key to the frame after which a condition holds, or with
# -1. A message that a frame's callback sends is handled after that frame was drawn.
_MEASURE = """
([condition, limit]) => {
  const isShown = new Function(`return ${condition}`);
  window.foregramMeasured = new Promise((resolve) => {
    const onKey = (event) => {
      document.removeEventListener('keydown', onKey, true);
      const pressed = event.timeStamp;
      const drawn = new MessageChannel();
      const look = () => requestAnimationFrame(() => drawn.port2.postMessage(null));
      drawn.port1.onmessage = () => {
        const took = performance.now() - pressed;
        if (isShown() || took > limit) resolve(took > limit ? -1 : took);
        else look();
      };
      look();
    };
    document.addEventListener('keydown', onKey, true);
  });
}
"""


def source() -> tuple[str, list[int]]:
    """Return functions that each lack a line, and the numbers of these lines."""
    text, places = '"""What a shop knows of its items."""\n', []
    for field in _FIELDS:
        text += f'\n\ndef total_{field}(items):\n    """The {field} of all items."""\n'
        text += "    total = 0\n    for item in items:\n        \n    return total\n"
        places.append(text.count("\n") - 1)
    return text, places


def key_ms(page: Page, key: str, is_shown: str, limit_ms: int) -> float:
    """Press a key; return the milliseconds until JavaScript's `is_shown` holds on the screen, or -1."""
    page.evaluate(_MEASURE, [is_shown, limit_ms])
    page.keyboard.press("Space" if key == " " else key)
    return float(page.evaluate("() => window.foregramMeasured"))


class _VsCode:
    def __init__(self, window: Window) -> None:
        self._window = window
        self.page = window.page

    def go_to(self, line: int, column: int = 9) -> None:
        """Put the caret into a line, counted from 1: behind its indentation."""
        self._window.go_to(line, column)

    def key_ms(self, key: str, want: str | None = None) -> float:
        """Press a key; return the milliseconds until there is ghost text, or this one; else -1."""
        is_wanted = "!== ''" if want is None else f"=== {json.dumps(want)}"
        return key_ms(self.page, key, f"foregramTest.ghost() {is_wanted}", _LIMIT_MS)

    def settled_ghost(self) -> str:
        return self._window.wait_for_ghost().ghost

    def leave(self) -> None:
        self._window.press("Escape")


class _Neovim:
    def __init__(self, editor: Neovim) -> None:
        self._editor = editor
        self.settled_ghost = editor.settled_ghost

    def go_to(self, line: int) -> None:
        self._editor.type(f"{line}GA")

    def key_ms(self, key: str, want: str | None = None) -> float:
        before, pressed = self._editor.view().before, time.perf_counter()
        self._editor.type(key)
        while (took := 1000 * (time.perf_counter() - pressed)) < _LIMIT_MS:
            view = self._editor.view()
            if view.before == before + key and view.ghost and want in (None, view.ghost):
                return took
        return -1

    def leave(self) -> None:
        self._editor.type("<C-]><Esc>")


def measure(editor: _VsCode | _Neovim, places: list[int]) -> dict[str, list[float]]:
    times: dict[str, list[float]] = {"fresh": [], "along": []}
    for line in places:
        editor.go_to(line)
        times["fresh"].append(editor.key_ms("t"))
        if times["fresh"][-1] >= 0:
            times["along"] += type_along(editor, editor.settled_ghost())
            editor.leave()
    return times


def type_along(editor: _VsCode | _Neovim, ghost: str) -> list[float]:
    """Return the times of the first keys of a ghost text, up to the first that was missed."""
    times: list[float] = []
    last = len(ghost) - 1  # its key would leave no ghost text
    keys = takewhile(lambda key: key.isalnum() or key in _ALONG_SIGNS, ghost[:last])
    for position, key in enumerate(islice(keys, NUM_ALONG), 1):
        times.append(editor.key_ms(key, ghost[position:]))
        if times[-1] < 0:
            break
        time.sleep(max(0.0, _KEY_S - times[-1] / 1000))
    return times


@contextmanager
def vscode(environ: Mapping[str, str], file: Path) -> Iterator[_VsCode]:
    with (
        chromium() as browser,
        code_server(environ, foregram_extension()) as server,
        workbench(browser, server, {"foregram.server.command": [str(COMMAND)]}) as code,
        code.window(file.parent) as window,
    ):
        window.wait_until_ready()
        window.open(file.name)
        yield _VsCode(window)


@contextmanager
def vim(version: str, ghost_text: str, environ: Mapping[str, str], file: Path) -> Iterator[_Neovim]:
    options = {"cmd": [str(COMMAND), "lsp"], "ghost_text": ghost_text}
    with neovim(version, environ, file.parent / "xdg", file, options=options) as editor:
        editor.until_ready()
        yield _Neovim(editor)


def summary(times: list[float]) -> dict[str, float]:
    shown = sorted(time for time in times if time >= 0)
    counted: dict[str, float] = {"keys": len(times), "missed": len(times) - len(shown)}
    if len(shown) < 2:
        return counted
    return counted | {
        "p50_ms": round(statistics.median(shown)),
        "p90_ms": round(statistics.quantiles(shown, n=10)[-1]),
    }


def main() -> None:
    editors: list[tuple[str, str, Callable[..., Any]]] = [("VS Code", "code-server", vscode)]
    for version, way in _NEOVIMS:
        editors.append(
            (f"Neovim {version}, {way}", f"neovim-{version}", partial(vim, version, way))
        )
    text, places = source()
    with own_home(user_cache()) as environ, ready_host(environ):
        for name, needed, opened in editors:
            if not (FOLDER / needed).exists():
                continue
            with tempfile.TemporaryDirectory() as folder:
                file = Path(folder, "shop.py")
                file.write_text(text)
                with opened(environ, file) as editor:
                    found = measure(editor, places)
            for kind, times in found.items():
                told = "  ".join(f"{key} {value:g}" for key, value in summary(times).items())
                sys.stdout.write(f"{name:22} {kind:6} {told}\n")
                sys.stdout.flush()


if __name__ == "__main__":
    main()
