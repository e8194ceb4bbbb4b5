"""What a finished completion is reported as: one line for people, one object for programs."""

import json
import sys
from dataclasses import dataclass
from typing import Any, TextIO

from engine import CompletionResult, FinishReason
from engine.completer import EngineInfo
from lsp_server.reasons import Reason

INTERRUPTED = 130  # as shells report a program that Ctrl-C ended
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
    FinishReason.MAX_TOKENS: "it has as many tokens as allowed",
    FinishReason.CONTEXT_FULL: "the model's context is full",
    FinishReason.CANCELLED: "it was cancelled",
}


@dataclass(frozen=True, slots=True)
class CompletionReport:
    """A completion with the file's own line ends in `text`, and the engine that wrote it."""

    text: str
    result: CompletionResult
    engine: EngineInfo
    peak_memory_mb: float
    replaced: int = 0  # characters behind the cursor that the text takes the place of
    reason: Reason | None = None  # why there is nothing worth showing

    @property
    def ending(self) -> str:
        """Why the completion ended, or why it is not shown, in words."""
        return self.reason.sentence if self.reason else _ENDINGS[self.result.finish_reason]

    @property
    def summary(self) -> str:
        """One line: cost, model, ending."""
        stats = self.result.stats
        parts = (
            f"{stats.tokens} tokens in {stats.steps} runs of the model",
            f"{stats.tokens_per_second:.1f} tokens a second",
            f"{self.engine.model} ({self.engine.dtype}) on {self.engine.device}",
            f"{self.peak_memory_mb:,.0f} MB of memory",
            self.ending if self.text else f"nothing to insert: {self.ending}",
        )
        return " · ".join(parts)

    def as_json(self) -> dict[str, Any]:
        """The fields of `--json`, in their order. Times in ms, memory in units of 2**20 bytes."""
        stats = self.result.stats
        return {
            "text": self.text,
            "replaced_chars_after_cursor": self.replaced,
            "tokens": stats.tokens,
            "steps": stats.steps,
            "tokens_per_step": round(stats.tokens_per_step, 3),
            "rows_per_step": round(stats.rows_per_step, 3),
            "prompt_tokens": stats.prompt_tokens,
            "neighbour_tokens": stats.neighbour_tokens,
            "neighbours": list(stats.neighbours),
            "prefill_ms": round(stats.prefill_ms, 2),
            "decode_ms": round(stats.decode_ms, 2),
            "tokens_per_second": round(stats.tokens_per_second, 2),
            "accepted_by_source": dict(stats.accepted_by_source),
            "model": self.engine.model,
            "device": self.engine.device,
            "dtype": self.engine.dtype,
            "peak_memory_mb": round(self.peak_memory_mb, 1),
            "finish_reason": self.result.finish_reason.value,
        }


class Output:
    """Where a completion goes; nowhere, where a method is not overridden."""

    def begin(self) -> None:
        """The completion starts."""

    def end(self, report: CompletionReport) -> None:
        """It is over."""


class JsonObject(Output):
    """One JSON object on one line, at the end."""

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def end(self, report: CompletionReport) -> None:
        """Print the report, which holds the whole text."""
        self._out.write(json.dumps(report.as_json()) + "\n")


# What a terminal would obey rather than show. Tab and line feed stay.
_VISIBLE = {code: 0x2400 + code for code in range(32) if chr(code) not in "\t\n"}
_VISIBLE |= {0x7F: 0x2421} | dict.fromkeys(range(0x80, 0xA0), 0xFFFD)


def visible(text: str) -> str:
    """`text` without escape sequences, which names of files and messages of hosts may hold."""
    return text.translate(_VISIBLE)


def note(sentence: str) -> None:
    """Say on stderr what is no command's answer."""
    sys.stderr.write(f"foregram: {visible(sentence)}\n")


def agreed(question: str) -> bool:
    """Whether a person at the terminal says yes."""
    sys.stderr.write(f"foregram: {question} [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")
