"""How soon a person sees ghost text in real Neovim.

    python -m tests.e2e.editors.test_neovim_latency

types lines of a small module at ten keys a second in each Neovim that is there, with the offline
model, and prints the time from a key to its ghost text: fresh, where none was shown before the key,
and typed along, where the key is the next character of what was shown. A key is missed where the ghost
text was not as expected within ten seconds; such keys are counted apart from the times.
"""

import statistics
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.support.editor_home import COMMAND, own_home, ready_host, user_cache
from tests.support.editor_parts import FOLDER
from tests.support.neovim import Neovim, neovim, setup_table

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.model,
    pytest.mark.editors,
    pytest.mark.timeout(400),  # the first start on a machine converts the model
]

WAYS = (("0.11", "own"), ("0.12", "builtin"), ("0.12", "own"))
KEY_S = 0.1  # ten keys a second
PATIENCE_S = 10.0
NUM_BEGUN = 4  # keys of a line before one waits
NUM_ALONG = 8
BEGIN = '''"""A shop's inventory."""


class Item:
    """Something that the shop sells."""

    def __init__(self, name, price, weight, count):
'''
LINES = """\
        self.name = name
        self.price = price
        self.weight = weight
        self.count = count

    def value(self):
        return self.price * self.count

    def load(self):
        return self.weight * self.count


def total_value(items):
    total = 0
    for item in items:
        total += item.value()
    return total


def total_load(items):
    total = 0
    for item in items:
        total += item.load()
    return total


def by_name(items):
    found = {}
    for item in items:
        found[item.name] = item
    return found
""".splitlines()


@dataclass
class Latencies:
    """Seconds from key to ghost text."""

    fresh: list[float] = field(default_factory=list)
    along: list[float] = field(default_factory=list)
    num_missed_fresh: int = 0
    num_missed_along: int = 0

    def rows(self) -> list[str]:
        """Figures in milliseconds, as rows of a table."""
        kinds = {
            "fresh": (self.fresh, self.num_missed_fresh),
            "typed along": (self.along, self.num_missed_along),
        }
        return [
            f"{name} | {percentile(times, 50)} | {percentile(times, 90)} | {len(times)} | {missed}"
            for name, (times, missed) in kinds.items()
        ]


def percentile(times: list[float], share: int) -> str:
    """That share of the times is at most this long, in milliseconds."""
    if len(times) < 2:
        return "-"
    return f"{1000 * statistics.quantiles(times, n=100, method='inclusive')[share - 1]:.0f}"


def measure(editor: Neovim, lines: list[str]) -> Latencies:
    """Type the lines as a person who waits for ghost text and follows it for a while."""
    latencies = Latencies()
    for line in lines:
        editor.lua("vim.fn.append(vim.fn.line('$'), '')")
        editor.type("G0i" + " " * (len(line) - len(line.lstrip())))
        begun = line.lstrip()[:NUM_BEGUN]
        if begun:
            _begin(editor, begun, latencies)
            _follow(editor, latencies)
        editor.type("<Esc>")
        editor.lua("vim.api.nvim_set_current_line(...)", line)
    return latencies


def _begin(editor: Neovim, begun: str, latencies: Latencies) -> None:
    for key in begun[:-1]:
        _pace(editor, key)
    before = editor.view()
    pressed = time.perf_counter()
    editor.type(begun[-1])
    while time.perf_counter() < pressed + PATIENCE_S:
        view = editor.view()
        if view.before == before.before + begun[-1] and view.ghost:
            is_along = before.ghost == begun[-1] + view.ghost
            times = latencies.along if is_along else latencies.fresh
            times.append(time.perf_counter() - pressed)
            return
    latencies.num_missed_fresh += 1


def _follow(editor: Neovim, latencies: Latencies) -> None:
    """Type along what is shown on the line."""
    for _ in range(NUM_ALONG):
        before = editor.view()
        if len(before.ghost.split("\n")[0]) < 2:
            return
        pressed = time.perf_counter()
        editor.type("<lt>" if before.ghost[0] == "<" else before.ghost[0])
        wanted = (before.before + before.ghost[0], before.ghost[1:])
        while editor.view() != wanted:
            if time.perf_counter() > pressed + PATIENCE_S:
                latencies.num_missed_along += 1
                return
        latencies.along.append(time.perf_counter() - pressed)
        time.sleep(max(0.0, KEY_S - (time.perf_counter() - pressed)))


def _pace(editor: Neovim, key: str) -> None:
    """A person's next key comes this much later."""
    editor.type(key)
    time.sleep(KEY_S)


def measure_way(
    version: str, ghost_text: str, environ: Mapping[str, str], folder: Path, lines: list[str]
) -> Latencies:
    """One Neovim, from its start to its end."""
    file = folder / "inventory.py"
    file.write_text(BEGIN)
    options = {"cmd": [str(COMMAND), "lsp"], "ghost_text": ghost_text}
    # Lines are indented by the typist here.
    before = "vim.cmd('filetype indent off')"
    setup = setup_table(options)
    with neovim(version, environ, folder / "xdg", file, setup=setup, before=before) as editor:
        editor.until_ready()
        return measure(editor, lines)


@pytest.mark.parametrize(("version", "ghost_text"), WAYS)
def test_ghost_text_comes_and_follows_the_typed_text(version, ghost_text, environ, tmp_path):
    latencies = measure_way(version, ghost_text, environ, tmp_path, LINES[:4])
    assert latencies.along
    assert latencies.num_missed_along == 0
    assert statistics.median(latencies.along) < 0.1  # from the editor's memory, not the model's


def main() -> None:
    """Print a table; an argument is the number of lines to type."""
    lines = LINES[: int(sys.argv[1])] if len(sys.argv) > 1 else LINES
    with own_home(user_cache()) as environ, ready_host(environ):
        sys.stdout.write("| Neovim, ghost text | | p50, ms | p90, ms | keys | missed |\n")
        sys.stdout.write("| --- | --- | --- | --- | --- | --- |\n")
        for version, ghost_text in WAYS:
            if (FOLDER / f"neovim-{version}").exists():
                with tempfile.TemporaryDirectory() as folder:
                    found = measure_way(version, ghost_text, environ, Path(folder), lines)
                for row in found.rows():
                    sys.stdout.write(f"| {version}, {ghost_text} | {row} |\n")
                sys.stdout.flush()


if __name__ == "__main__":
    main()
