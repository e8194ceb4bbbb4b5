"""The time from the last key to a next edit on VS Code's screen, with an engine of a known time.

    python -m tests.e2e.editors.edit_latency

The server, the host and the editor are real. `rest_ms` is what is left without the engine's time and
without the pause in which the extension waits for a further key.
"""

import re
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from engine.request import CompletionRequest, EditOutcome
from tests.e2e.editors.latency import key_ms, vscode
from tests.support.edit_engine import EditEngine, served_edits
from tests.support.editor_home import own_home

ENGINE_MS = 100
NUM_KEYS = 30
_LIMIT_MS = 10_000
_OCCASIONS = Path(__file__).parents[3] / "editor_plugins/vscode/src/editOccasions.ts"
# What an extension draws has classes of this kind; this one draws nothing else.
_IS_DRAWN = "!!document.querySelector('.editor-instance .view-line span[class*=\"ced-\"]')"


class _TimedEngine(EditEngine):
    """Needs `ENGINE_MS` for an edit, which is of the next line, and completes nothing."""

    def answer(self, request: CompletionRequest) -> EditOutcome:
        row = request.prefix.count("\n") + 1
        return EditOutcome(row, row + 1, (f"cost_{row} = {row}",), probability=0.9)

    def completing(self, request: CompletionRequest, **how: Any) -> Any:
        self.words = ("edit",) if request.edit else ()
        return (yield from super().completing(request, **how))


def pause_ms() -> int:
    """Return the pause in milliseconds, as the extension has it."""
    (found,) = re.findall(r"^const PAUSE_MS = (\d+);", _OCCASIONS.read_text(), re.MULTILINE)
    return int(found)


def measure() -> list[float]:
    """Return the milliseconds from each key to the frame with the edit that follows it."""
    text = "".join(f"price_{row} = {row}\n" for row in range(NUM_KEYS + 1))
    engine = _TimedEngine(before_word=lambda _: time.sleep(ENGINE_MS / 1000))
    with (
        own_home() as environ,
        served_edits(engine, environ),
        tempfile.TemporaryDirectory() as name,
    ):
        file = Path(name, "shop.py")
        file.write_text(text)
        with vscode(environ, file) as editor:
            times = []
            for row in range(NUM_KEYS):
                editor.go_to(row + 1, len(f"price_{row} = {row}") + 1)
                times.append(key_ms(editor.page, "0", _IS_DRAWN, _LIMIT_MS))
                editor.leave()
    return times


def main() -> None:
    times = measure()
    shown = [one for one in times if one >= 0]
    p50 = statistics.median(shown)
    rest = p50 - ENGINE_MS - pause_ms()
    sys.stdout.write(
        f"keys {len(times)}  missed {len(times) - len(shown)}  p50_ms {p50:.0f}  "
        f"engine_ms {ENGINE_MS}  pause_ms {pause_ms()}  rest_ms {rest:.0f}\n"
    )


if __name__ == "__main__":
    main()
