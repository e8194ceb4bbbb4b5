"""What a person sees on a terminal: progress bars, figures, a completion amid its lines."""

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TextIO, TypeVar

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
from rich.text import Text

from engine import progress
from lsp_server.cli.report import CompletionReport, Output, visible

T = TypeVar("T")
CONTEXT_LINES = 5  # shown before and behind the cursor


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


class CompletionView(Output):
    """The cursor's neighbourhood on a terminal: context dim, the completion between."""

    def __init__(self, console: Console, text: str, offset: int, line_end: str) -> None:
        """`line_end` is that of completions; those of `text` are line feeds."""
        self._console, self._line_end = console, line_end
        self._before = text[:offset].split("\n")[-CONTEXT_LINES - 1 :]
        self._after = text[offset:].split("\n")[: CONTEXT_LINES + 1]

    def begin(self) -> None:
        """Show the lines up to the cursor."""
        self._show("\n".join(self._before), style="dim")

    def end(self, report: CompletionReport) -> None:
        """Show the completion, the lines after the cursor, and the summary."""
        self._show(report.text.replace(self._line_end, "\n"))
        after = "\n".join(self._after)[report.replaced :]
        self._show(after.rstrip("\n") + "\n", style="dim")
        self._console.print(visible(report.summary), style="italic", highlight=False, markup=False)

    def _show(self, text: str, style: str = "") -> None:
        shown = Text(visible(text), style=style)  # a file may hold escape sequences
        self._console.print(shown, end="", soft_wrap=True, highlight=False)


class PlainText(Output):
    """The completion alone on stdout, for pipes and files; the summary goes to stderr."""

    def __init__(self, out: TextIO, errors: TextIO) -> None:
        self._out, self._errors = out, errors

    def end(self, report: CompletionReport) -> None:
        """Print the completion, and the summary where it does not disturb."""
        self._out.write(report.text)
        self._out.flush()
        # Where both streams share a screen, the summary begins a line of its own.
        line_end = "" if not report.text or report.text.endswith(("\n", "\r")) else "\n"
        console = Console(file=self._errors)
        summary = f"{line_end}foregram: {visible(report.summary)}"
        in_one = not console.is_terminal  # a program reads one line; a person's is cut at words
        console.print(summary, highlight=False, markup=False, soft_wrap=in_one)
