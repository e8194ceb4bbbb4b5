"""Applies the stop rules in their order to a completion's text, token by token."""

import time
from collections.abc import Callable, Iterable
from typing import NamedTuple

from engine.config import StopRules
from engine.request import FinishReason
from engine.text.brackets import num_open
from engine.text.confidence import ConfidenceRule
from engine.text.indentation import IndentationRule, shallow_cut
from engine.text.lines import Written, last_line, pieces
from engine.text.rejoin import RejoinRule
from engine.text.repetition import repetition_cut, repetition_held
from engine.text.suffix import SuffixRule

_MODELS_ENDS = (FinishReason.END_TOKEN, FinishReason.FIM_TOKEN)
_MOST_BEFORE = 2000  # characters before the cursor, whose brackets are counted at each token
_PATIENCE = 1.5  # times the limit, for a text that is useless as it stands; 2 feels slow


class Stop(NamedTuple):
    """The reason for a completion's end, and its final text."""

    reason: FinishReason
    text: str


class Stopper:
    """Judges each token up to a Stop. All rules but the time limit depend on the tokens alone."""

    def __init__(
        self,
        rules: StopRules,
        prefix: str,
        suffix: str,
        *,
        copied: str = "",  # that the text mostly repeats
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._rules = rules
        self._suffix = suffix
        self._suffix_rule = SuffixRule.of(prefix, suffix if rules.suffix else "")
        self._indentation_rule = IndentationRule.of(prefix, suffix)
        limits = rules.min_confidence, rules.min_line_confidence, rules.min_later_confidence
        self._confidence_rule = ConfidenceRule(*limits, last_line(prefix)[-_MOST_BEFORE:])
        self._rejoin_rule = RejoinRule.of(copied if rules.rejoins else "")
        self._clock = clock
        self._began: float | None = None  # at the first token, as the prompt's time does not count
        self._num_tokens = 0
        self._has_whole_line = False  # the text could end with it
        self._written = Written()

    @property
    def text(self) -> str:
        """The text so far, including parts that the rules may still take back."""
        return self._written.text

    @property
    def stable_len(self) -> int:
        """Characters of `text` that no later rule can take back: they may be streamed."""
        seen = self._written
        begun = (_begun(seen.text, one) for one in self._rules.strings)
        unstopped = min(begun, default=len(seen.text))
        if unstopped < len(seen.text):
            seen = Written.of(self.text[:unstopped])
        if self._rules.min_confidence:
            seen = Written.of(self.text[: self._confidence_rule.held(seen)])
        held = self._suffix_rule.held(seen)
        if self._rules.repetition:
            held = min(held, repetition_held(seen))
        return len(self.text[:held].rstrip())

    @property
    def told(self) -> int:
        """Characters of `text` to show once they are stable, as the rest may be dropped."""
        return self._confidence_rule.told

    @property
    def may_drop(self) -> bool:
        """Whether the text behind the stable part may turn out to be too unlikely."""
        return self._confidence_rule.end is not None

    def push(self, delta: str, log_prob: float = 0.0) -> Stop | None:
        """Add a token's text and natural log-probability; return a Stop if the completion ends."""
        self._num_tokens += 1
        rule = self._confidence_rule if self._rules.min_confidence else None
        if rule is not None and rule.ends(self._written, delta, log_prob):
            return self._unsure(rule.end or 0)
        if self._began is None:
            self._began = self._clock()
        for piece in pieces(delta):
            self._written.push(piece)
            if rule is not None and piece.endswith("\n") and piece != "\n":
                rule.end_line(self.text)
            stop = self._string_end(len(piece)) or self._rejoined() or self._judge()
            if stop is not None:
                return stop
        if self._num_tokens >= self._rules.max_tokens:
            return self.finish(FinishReason.MAX_TOKENS)
        return None

    def finish(self, reason: FinishReason) -> Stop:
        """End for a reason outside the text, which counts as a line end."""
        end = self._confidence_rule.end
        if end is None or reason in _MODELS_ENDS:
            return self._ended(reason, self.text)
        is_cancelled = reason is FinishReason.CANCELLED
        return self._unsure(end, reason if is_cancelled else FinishReason.UNSURE)

    def _unsure(self, end: int, reason: FinishReason = FinishReason.UNSURE) -> Stop:
        """End with the text that stays, and the line end behind it."""
        end += self.text.startswith("\n", end)
        return Stop(reason, self._without_blank_end(self._ended(reason, self.text[:end]).text))

    def _string_end(self, num_new: int) -> Stop | None:
        """End before one of the caller's strings, without the text that repeats the suffix."""
        cut = _strings_cut(self._rules.strings, self.text, num_new)
        if cut is None:
            return None
        text = self.text[:cut]
        repeat = self._suffix_rule.overlap(Written.of(text + "\n"))
        return self._ended(*_stop(FinishReason.STOP_STRING, text, repeat))

    def _rejoined(self) -> Stop | None:
        rest = self._rejoin_rule.rest(self.text) if self._written.at_line_end else ""
        return Stop(FinishReason.REJOINED, self.text + rest) if rest.strip() else None

    def _ended(self, reason: FinishReason, text: str) -> Stop:
        """End a text that no rule has ended, without a last line that repeats the suffix."""
        if not text.endswith("\n"):
            cut = self._suffix_rule.cut(Written.of(text + "\n"))
            if cut is None and reason in _MODELS_ENDS:
                cut = self._suffix_rule.word_overlap(text)
            return _stop(reason, text, cut)
        return Stop(reason, text)

    def _judge(self) -> Stop | None:
        rules, seen, text = self._rules, self._written, self.text
        if seen.at_line_end and (cut := self._suffix_rule.cut(seen)) is not None:
            return Stop(FinishReason.SUFFIX, text[:cut])
        if rules.repetition and (cut := repetition_cut(seen)) is not None:
            return Stop(FinishReason.REPETITION, self._without_blank_end(text[:cut]))
        if (cut := self._block_end()) is not None:
            return self._stop_line(FinishReason.INDENTATION, text[:cut])
        return self._judge_line_end() if seen.at_line_end else None

    def _block_end(self) -> int | None:
        cut = self._indentation_rule.cut(self._written) if self._rules.indentation else None
        return shallow_cut(self._written, self._rules.min_indent) if cut is None else cut

    def _judge_line_end(self) -> Stop | None:
        text, rules = self.text, self._rules
        if rules.single_line and text.strip():
            reason, text = self._stop_line(FinishReason.LINE, text)
            return Stop(reason, text.rstrip())
        if _blank_lines(text) > rules.max_blank_lines:
            return self._stop_line(FinishReason.BLANK_LINES, text)
        if not text.strip():
            return None
        self._has_whole_line = self._has_whole_line or not _is_unfinished(text)
        return self.finish(FinishReason.TIME) if self._is_late else None

    @property
    def _is_late(self) -> bool:
        limit_ms = self._rules.time_limit_ms
        if limit_ms is None or self._began is None:
            return False
        patience = 1 if self._has_whole_line else _PATIENCE
        return self._clock() - self._began >= patience * limit_ms / 1000

    def _stop_line(self, reason: FinishReason, text: str) -> Stop:
        """End without the text that repeats the suffix, or else the blank lines before it."""
        cut = self._suffix_rule.overlap(Written.of(text))
        if cut < len(text):
            return _stop(reason, text, cut)
        return Stop(reason, self._without_blank_end(text))

    def _without_blank_end(self, text: str) -> str:
        kept = text.rstrip()
        needs_line_end = self._suffix and not self._suffix.startswith(("\n", "\r"))
        return kept + "\n" if needs_line_end and "\n" in text[len(kept) :] else kept


def _stop(reason: FinishReason, text: str, cut: int | None) -> Stop:
    """End at `cut`, where the suffix's repeat begins: a text that only repeats it has reached it."""
    is_repeat = bool(text.strip()) and not text[:cut].strip()
    return Stop(FinishReason.SUFFIX if is_repeat else reason, text[:cut])


def _is_unfinished(text: str) -> bool:
    """Whether the text ends inside brackets, or in a header without its block."""
    return num_open(text) > 0 or text.rstrip().endswith(":")


def _blank_lines(text: str) -> int:
    """Count the blank lines at the end of `text`, which ends with a line end."""
    return text[len(text.rstrip()) :].count("\n") - (1 if text.strip() else 0)


def _strings_cut(strings: Iterable[str], text: str, num_new: int) -> int | None:
    """Start of the first of the strings that end within the last `num_new` characters."""
    starts = [
        start
        for one in strings
        if (start := text.find(one, max(0, len(text) - num_new - len(one) + 1))) >= 0
    ]
    return min(starts, default=None)


def _begun(text: str, string: str) -> int:
    """Start of the longest beginning of `string` at the end of `text`."""
    first = max(0, len(text) - len(string) + 1)
    starts = (start for start in range(first, len(text)) if string.startswith(text[start:]))
    return next(starts, len(text))
