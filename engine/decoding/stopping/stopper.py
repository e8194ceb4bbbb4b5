"""When a completion ends, judged token by token on its text: the rules in their order."""

import time
from collections.abc import Callable
from typing import NamedTuple

from engine.config import StopRules
from engine.decoding.stopping.indentation import IndentationRule
from engine.decoding.stopping.lines import Written, pieces
from engine.decoding.stopping.repetition import repetition_cut, repetition_held
from engine.decoding.stopping.suffix import SuffixRule
from engine.decoding.stopping.suffix_head import SuffixHead
from engine.request import FinishReason


class Stop(NamedTuple):
    """Why a completion ended, and its whole text as it stays."""

    reason: FinishReason
    text: str


class Stopper:
    """Hears each token's text and says when to stop.

    Every rule but the time limit is a pure function of the text so far and looks at it once per
    line end and once per token, so plain and lookahead decoding stop at the same token. After a
    Stop it must not be fed again.
    """

    def __init__(
        self,
        rules: StopRules,
        prefix: str,
        suffix: str,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Read the text around the cursor; the time limit counts from the first token."""
        self._rules = rules
        self._suffix = suffix
        self._suffix_rule = SuffixRule(SuffixHead.of(prefix, suffix))
        self._indentation_rule = IndentationRule.of(prefix, suffix)
        self._clock = clock
        self._began: float | None = None
        self._num_tokens = 0
        self._written = Written()

    @property
    def text(self) -> str:
        """What has been written so far, what the rules may still take back included."""
        return self._written.text

    @property
    def stable_len(self) -> int:
        """Characters of `text` that no later rule can take back: they may be streamed."""
        held = min(self._suffix_rule.held(self._written), repetition_held(self._written))
        return len(self.text[:held].rstrip())

    def push(self, delta: str) -> Stop | None:
        """Add the text of one token (it may be empty) and tell whether it ends the completion."""
        self._num_tokens += 1
        if self._began is None:  # to read the prompt is no time of the completion
            self._began = self._clock()
        for piece in pieces(delta):
            self._written.push(piece)
            stop = self._judge()
            if stop is not None:
                return stop
        if self._num_tokens >= self._rules.max_tokens:
            return self.finish(FinishReason.MAX_TOKENS)
        return None

    def finish(self, reason: FinishReason) -> Stop:
        """End for a reason outside the text, which counts as a line end.

        Only where the model itself ended may the last word be the suffix's first.
        """
        text = self.text
        ended = reason in (FinishReason.END_TOKEN, FinishReason.FIM_TOKEN)
        if self._rules.suffix and not self._written.at_line_end:
            cut = self._suffix_rule.cut(Written.of(text + "\n"))
            if cut is None and ended:
                cut = self._suffix_rule.word_overlap(text)
            text = text[:cut]
        return Stop(reason, text)

    def _judge(self) -> Stop | None:
        at_line_end = self._written.at_line_end
        if self._rules.suffix and at_line_end:
            cut = self._suffix_rule.cut(self._written)
            if cut is not None:
                return Stop(FinishReason.SUFFIX, self.text[:cut])
        if self._rules.repetition:
            cut = repetition_cut(self._written)
            if cut is not None:
                return Stop(FinishReason.REPETITION, self._without_blank_end(self.text[:cut]))
        if self._rules.indentation:
            cut = self._indentation_rule.cut(self._written)
            if cut is not None:
                return Stop(FinishReason.INDENTATION, self._without_overlap(self.text[:cut]))
        return self._judge_line_end() if at_line_end else None

    def _judge_line_end(self) -> Stop | None:
        text, rules = self.text, self._rules
        if rules.single_line and text.strip():
            return Stop(FinishReason.LINE, self._without_overlap(text).rstrip())
        if _blank_lines(text) > rules.max_blank_lines:
            return Stop(FinishReason.BLANK_LINES, self._without_overlap(text))
        return Stop(FinishReason.TIME, text) if text.strip() and self._is_late else None

    @property
    def _is_late(self) -> bool:
        limit = self._rules.time_limit_s
        if limit is None or self._began is None:
            return False
        return self._clock() - self._began >= limit

    def _without_overlap(self, text: str) -> str:
        """Drop what repeats the suffix, or else the blank lines before it."""
        cut = self._suffix_rule.overlap(Written.of(text)) if self._rules.suffix else len(text)
        return text[:cut] if cut < len(text) else self._without_blank_end(text)

    def _without_blank_end(self, text: str) -> str:
        kept = text.rstrip()
        needs_line_end = self._suffix and not self._suffix.startswith(("\n", "\r"))
        return kept + "\n" if needs_line_end and "\n" in text[len(kept) :] else kept


def _blank_lines(text: str) -> int:
    """Blank lines that `text`, which ends with a line end, ends with."""
    return text[len(text.rstrip()) :].count("\n") - (1 if text.strip() else 0)
