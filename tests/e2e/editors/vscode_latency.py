"""How long a person waits in VS Code from a key to ghost text, on the offline model.

    python -m tests.e2e.editors.vscode_latency [--json]

`fresh` is a key at a place that nobody has completed yet, `along` a key that continues the ghost
text on the screen. Times are read in the page, from the key's event to the frame that shows it.
"""

import argparse
import json
import statistics
import sys
import tempfile
from itertools import islice, takewhile
from pathlib import Path

from playwright.sync_api import Page

from tests.support.editor_home import COMMAND, own_home, ready_host, user_cache
from tests.support.vscode import chromium, foregram_extension, workbench
from tests.support.vscode_screen import prepare
from tests.support.vscode_server import code_server
from tests.support.vscode_window import Window

NUM_ALONG = 8  # keys of each ghost text, where it is as long
_LIMIT_MS = 10_000
_ALONG_SIGNS = " =_.,:+-*/"  # a bracket or a quote would bring its partner along
_FIELDS = (
    *("price", "weight", "height", "width", "depth", "volume", "rating", "discount"),
    *("tax", "margin", "cost", "profit", "age", "score", "length", "area"),
)

# Resolves with the milliseconds from the next key to the frame after which `isShown` holds, or with
# -1. A message that follows a frame's callback is handled after that frame was drawn.
_MEASURE = """
([want, limit]) => {
  const isShown = want === null
    ? () => foregramTest.ghost() !== ''
    : () => foregramTest.ghost() === want;
  window.foregramMeasured = new Promise((resolve) => {
    const onKey = (event) => {
      document.removeEventListener('keydown', onKey, true);
      const pressed = event.timeStamp;
      const look = () => {
        if (performance.now() - pressed > limit) return resolve(-1);
        if (!isShown()) return requestAnimationFrame(look);
        const drawn = new MessageChannel();
        drawn.port1.onmessage = () => resolve(performance.now() - pressed);
        drawn.port2.postMessage(null);
      };
      requestAnimationFrame(look);
    };
    document.addEventListener('keydown', onKey, true);
  });
}
"""


def source() -> tuple[str, list[int]]:
    """Functions that each lack a line, and the numbers of these lines."""
    text, places = '"""What a shop knows of its items."""\n', []
    for field in _FIELDS:
        text += f'\n\ndef total_{field}(items):\n    """The {field} of all items."""\n'
        text += "    total = 0\n    for item in items:\n        \n    return total\n"
        places.append(text.count("\n") - 1)
    return text, places


def key_to_ghost(page: Page, key: str, want: str | None = None) -> float:
    """Press a key; the milliseconds until there is ghost text, or exactly this one."""
    prepare(page)
    page.evaluate(_MEASURE, [want, _LIMIT_MS])
    page.keyboard.press(key)
    return float(page.evaluate("() => window.foregramMeasured"))


def measure(window: Window) -> dict[str, list[float]]:
    """The times of all keys, in milliseconds; -1 where no ghost text came."""
    times: dict[str, list[float]] = {"fresh": [], "along": []}
    text, places = source()
    (window.folder / "shop.py").write_text(text)
    window.open("shop.py")
    for line in places:
        window.go_to(line, 9)
        times["fresh"].append(key_to_ghost(window.page, "t"))
        if times["fresh"][-1] >= 0:
            times["along"] += type_along(window, window.wait_for_ghost().ghost)
            window.press("Escape")
    return times


def type_along(window: Window, ghost: str) -> list[float]:
    """The times of the first keys of a ghost text; a missed one is the last: the text is gone."""
    times: list[float] = []
    last = len(ghost) - 1  # its key would leave no ghost text
    keys = takewhile(lambda key: key.isalnum() or key in _ALONG_SIGNS, ghost[:last])
    for position, key in enumerate(islice(keys, NUM_ALONG), 1):
        times.append(key_to_ghost(window.page, _named(key), ghost[position:]))
        if times[-1] < 0:
            break
    return times


def _named(key: str) -> str:
    return "Space" if key == " " else key


def summary(times: list[float]) -> dict[str, float]:
    """What is published: the median, the ninth tenth, and how many keys had no ghost text."""
    shown = sorted(time for time in times if time >= 0)
    counted: dict[str, float] = {"keys": len(times), "missed": len(times) - len(shown)}
    if len(shown) < 2:
        return counted
    return counted | {
        "p50_ms": round(statistics.median(shown)),
        "p90_ms": round(statistics.quantiles(shown, n=10)[-1]),
    }


def table(found: dict[str, dict[str, float]]) -> str:
    """The figures of each kind of key on a line."""
    columns = ("keys", "missed", "p50_ms", "p90_ms")
    rows = [["vscode", *columns]]
    for name, figures in found.items():
        rows.append([name, *(str(figures.get(column, "-")) for column in columns)])
    return "".join(
        f"{first:8}" + "".join(f"{one:>8}" for one in rest) + "\n" for first, *rest in rows
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead")
    options = parser.parse_args()
    settings = {"foregram.server.command": [str(COMMAND)]}
    with (
        tempfile.TemporaryDirectory() as folder,
        own_home(user_cache()) as environ,
        ready_host(environ),
        chromium() as browser,
        code_server(environ, foregram_extension()) as server,
        workbench(browser, server, settings) as code,
        code.window(Path(folder)) as window,
    ):
        window.wait_until_ready()
        found = {name: summary(times) for name, times in measure(window).items()}
    if options.json:
        sys.stdout.write(json.dumps({"editor": "vscode", **found}) + "\n")
        return
    sys.stdout.write(table(found))


if __name__ == "__main__":
    main()
