"""What a person sees on a terminal while something runs, and the figures of a benchmark."""

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

from rich.console import Console, RenderableType
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
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
    """One bar after the other, on stderr by default; the engine's `Progress`, drawn."""

    def __init__(self, console: Console | None = None) -> None:
        console = console or Console(stderr=True)
        columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn())
        self._bars = Progress(*columns, console=console, transient=True)
        self._task: TaskID | None = None

    def begin(self, task: str, total: int) -> None:
        """Draw a bar for `total` pieces of work; without a terminal a line says what is being done."""
        if not self._bars.console.is_terminal:
            self.tell(task)
            return
        self._bars.start()
        self._task = self._bars.add_task(task, total=total)

    def advance(self, amount: int) -> None:
        """`amount` more of them are done."""
        if self._task is not None:
            self._bars.advance(self._task, amount)

    def end(self) -> None:
        """Take the bar away."""
        if self._task is not None:
            self._bars.remove_task(self._task)
            self._bars.stop()
            self._task = None

    def tell(self, sentence: str) -> None:
        """Print a line that stays, above a bar if there is one."""
        line = f"foregram: {visible(sentence)}"
        self._bars.console.print(line, highlight=False, markup=False, soft_wrap=True)


def tracked(items: Sequence[T], noun: str) -> Iterator[T]:
    """The items, and on stderr how many of them are done; nothing there without a terminal."""
    columns = (BarColumn(), MofNCompleteColumn(), TextColumn(noun), TimeRemainingColumn())
    console = Console(stderr=True)
    bar = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
    with bar:
        yield from bar.track(items)


def print_figures(
    arguments: argparse.Namespace, figures: Mapping[str, Any], tables: RenderableType
) -> None:
    """Print what a benchmark found: tables, or with `--json` one line for programs."""
    if arguments.json:
        sys.stdout.write(json.dumps(figures) + "\n")
    else:
        Console().print(tables)
