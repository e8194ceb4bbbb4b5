"""Progress bars on a terminal, and the figures of a benchmark."""

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

from rich.console import Console, RenderableType
from rich.progress import (
    BarColumn,
    Progress,
    TaskID,
    TaskProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)

from engine import progress
from lsp_server.cli.messages import visible

T = TypeVar("T")


class ProgressBars(progress.Progress):
    """The engine's `Progress`, drawn as one bar after the other, on stderr by default."""

    def __init__(self, console: Console | None = None) -> None:
        console = console or Console(stderr=True)
        bar = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn())
        self._bars = Progress(*bar, TimeRemainingColumn(), console=console, transient=True)
        self._task: TaskID | None = None

    def begin(self, task: str, total: int) -> None:
        """Draw a bar for `total` pieces of work; without a terminal, print the task as a line."""
        if not self._bars.console.is_terminal:
            self.tell(task)
            return
        self._bars.start()
        self._task = self._bars.add_task(task, total=total or None)

    def advance(self, amount: int) -> None:
        """Advance the bar by `amount` pieces."""
        if self._task is not None:
            self._bars.advance(self._task, amount)

    def end(self) -> None:
        """Remove the bar."""
        if self._task is not None:
            self._bars.stop()
            self._bars.remove_task(self._task)
            self._task = None

    def tell(self, sentence: str) -> None:
        """Print a line that stays, above a bar if there is one."""
        line = f"foregram: {visible(sentence)}"
        self._bars.console.print(line, highlight=False, markup=False, soft_wrap=True)


def tracked(items: Sequence[T], noun: str) -> Iterator[T]:
    """Yield the items, and show on stderr how many are done if it is a terminal."""
    shown = ProgressBars() if sys.stderr.isatty() else progress.Progress()
    return progress.counted(shown, noun, items)


def print_figures(
    arguments: argparse.Namespace, figures: Mapping[str, Any], tables: RenderableType
) -> None:
    """Print a benchmark's figures: tables, or with `--json` one line for programs."""
    if arguments.json:
        sys.stdout.write(json.dumps(figures) + "\n")
    else:
        Console().print(tables)
