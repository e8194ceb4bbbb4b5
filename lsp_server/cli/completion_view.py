"""A completion as a person sees it, between its dimmed neighbours, and as a pipe reads it."""

from typing import TextIO

from rich.console import Console
from rich.text import Text

from lsp_server.cli.report import CompletionReport, Output, visible
from lsp_server.cli.source_file import SourceFile

CONTEXT_LINES = 5


class CompletionView(Output):
    """The cursor's neighbourhood on a terminal: context dim, the completion between."""

    def __init__(self, console: Console, source: SourceFile, offset: int) -> None:
        self._console, self._line_end = console, source.line_end
        self._before = source.text[:offset].split("\n")[-CONTEXT_LINES - 1 :]
        self._after = source.text[offset:].split("\n")[: CONTEXT_LINES + 1]

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
