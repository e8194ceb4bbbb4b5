"""Reports of a finished completion: for programs, for a pipe, and for a terminal."""

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass

from rich.console import Console
from rich.text import Text

from engine.completer import EngineInfo
from engine.request import Done, FinishReason
from lsp_server.cli.messages import visible
from lsp_server.reasons import ANOTHER, Reason

CONTEXT_LINES = 5  # lines shown on each side of the cursor
_ENDINGS = {
    FinishReason.END_TOKEN: "the model ended its text",
    FinishReason.FIM_TOKEN: "the model ended its text",
    FinishReason.SUFFIX: "it reached the text after the cursor",
    FinishReason.INDENTATION: "the block at the cursor is complete",
    FinishReason.REPETITION: "it began to repeat itself",
    FinishReason.BLANK_LINES: "it came to blank lines",
    FinishReason.LINE: "one line was asked for",
    FinishReason.TIME: "its time was over",
    FinishReason.UNSURE: "the model was not sure of what follows",
    FinishReason.STOP_STRING: "it came to a stop string",
    FinishReason.REJOINED: "it went on as the text that it changes",
    FinishReason.MAX_TOKENS: "it has as many tokens as allowed",
    FinishReason.CONTEXT_FULL: "the model's context is full",
    FinishReason.CANCELLED: "it was cancelled",
    FinishReason.PREFILLED: "its prompt was only to be read",
}


_COSTS = (
    *("tokens", "steps", "tokens_per_step", "rows_per_step", "prompt_tokens", "neighbour_tokens"),
    *("neighbours", "prefill_ms", "decode_ms", "tokens_per_second", "accepted_by_source"),
)


@dataclass(frozen=True, slots=True)
class CompletionReport:
    """A completion with the file's own line ends in `text`, and the engine that wrote it."""

    text: str
    result: Done
    engine: EngineInfo
    peak_memory_mb: float
    replaced: int = 0  # characters behind the cursor that the text replaces
    reason: Reason | None = None  # why there is nothing worth showing

    @property
    def ending(self) -> str:
        """Why the completion ended, or why it is not shown, in words."""
        return self.reason.sentence if self.reason else _ENDINGS[self.result.finish_reason]

    @property
    def summary(self) -> str:
        """One line: cost, model, ending."""
        ending = self.ending if self.text else f"nothing to insert: {self.ending}"
        another = (ANOTHER,) if self.result.cost.avoids_suffix else ()
        return " · ".join((self.figures, *another, ending))

    @property
    def figures(self) -> str:
        """Cost and model in words."""
        cost = self.result.cost
        parts = (
            f"{cost.tokens} tokens in {cost.steps} runs of the model",
            f"{cost.tokens_per_second:.1f} tokens a second",
            f"{self.engine.model} ({self.engine.dtype}) on {self.engine.device}",
            f"{self.peak_memory_mb:,.0f} MB of memory",
        )
        return " · ".join(parts)


def print_json(report: CompletionReport) -> None:
    """Print one JSON object on one line. Times in ms, memory in units of 2**20 bytes."""
    print_figures({"text": report.text, "replaced_chars_after_cursor": report.replaced}, report)


def print_figures(answer: Mapping[str, object], report: CompletionReport) -> None:
    """Print an answer with its figures as one JSON object on one line."""
    known = {
        **answer,
        **{name: getattr(report.result.cost, name) for name in _COSTS},
        **{name: getattr(report.engine, name) for name in ("model", "device", "dtype")},
        "peak_memory_mb": report.peak_memory_mb,
        "finish_reason": report.result.finish_reason.value,
    }
    shown = {key: round(one, 3) if type(one) is float else one for key, one in known.items()}
    sys.stdout.write(json.dumps(shown) + "\n")


def print_plain(report: CompletionReport) -> None:
    """Print the completion alone to stdout, for pipes and files, and the summary to stderr."""
    sys.stdout.write(report.text)
    sys.stdout.flush()
    # Both streams may share a screen: begin the summary on a line of its own.
    line_end = "" if not report.text or report.text.endswith(("\n", "\r")) else "\n"
    console = Console(stderr=True)
    summary = f"{line_end}foregram: {visible(report.summary)}"
    in_one = not console.is_terminal  # wrap at words for a person, never for a program
    console.print(summary, highlight=False, markup=False, soft_wrap=in_one)


def print_view(report: CompletionReport, before: str, after: str, console: Console) -> None:
    """Print the completion on a terminal, between dimmed lines of context."""

    def show(text: str, style: str = "") -> None:
        shown = Text(visible(text), style=style)  # a file may hold escape sequences
        console.print(shown, end="", soft_wrap=True, highlight=False)

    above = before.split("\n")[-CONTEXT_LINES - 1 :]
    below = "\n".join(after.split("\n")[: CONTEXT_LINES + 1])[report.replaced :]
    show("\n".join(above), style="dim")
    show(report.text.replace("\r\n", "\n").replace("\r", "\n"))
    show(below.rstrip("\n") + "\n", style="dim")
    console.print(visible(report.summary), style="italic", highlight=False, markup=False)
