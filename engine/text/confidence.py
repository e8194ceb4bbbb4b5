"""Tells what is sure of a text, and ends it before a line that is too unlikely as a whole.

A line's probability is the product of its tokens'. Its beginning is told while it is sure. The rest
follows if the whole line is likely enough, and so does each later line, by its own probability.
What is told closes everything that it opened, and a line goes on until it does.
"""

import math
import re
from dataclasses import dataclass, field

from engine.text.brackets import balance
from engine.text.lines import Written, last_line

_BLOCK = re.compile(r"\{[ \t]*\n")
# A line that ends so needs more: an operator or one of these words.
_JOINT = re.compile(
    r".*([^\s\w)\]}>\"'`;*?!]|[-=]>|= range)"
    r"|(.*[^\w.])?(and|as|async|await|case|class|const|def|else|enum|extends|final|for|from|fn"
    r"|func|function|if|implements|import|in|instanceof|is|lambda|let|match|new|not|of|or|private"
    r"|protected|public|static|struct|switch|throw|type|unless|until|val|var|while|with)",
    re.DOTALL,
)
_HALF_HEADER = re.compile(
    r"\s*(\} *)?(async +)?(class|def|elif|else|except|finally|for|if|match|switch|while|with)\b"
    r".*[^\s:{;]",
    re.DOTALL,
)


@dataclass(slots=True)
class ConfidenceRule:
    """Judges each token of a text. The probabilities are within 0 and 1."""

    min_confidence: float  # of the sure beginning
    min_line: float  # of the whole first line, if its beginning alone is sure
    min_later: float  # of each later line
    before: str = ""  # the cursor's line up to the cursor
    end: int | None = None  # of the text that stays, once a token is unsure or a line is whole
    told: int = 0  # characters to show as soon as they are final
    _log_prob: float = field(default=0.0, init=False)  # of the line so far
    _is_later: bool = field(default=False, init=False)  # it is not the first line
    _is_open: bool = field(default=False, init=False)  # the text ends before something open

    def ends(self, written: Written, delta: str, log_prob: float) -> bool:
        """Add a token's text and log-probability; return whether the text ends, at `end`.

        A line end says nothing about its own line, but may be an unlikely start of the next.
        """
        if delta.startswith("\n") and written.growing is not None:
            self.end_line(written.text)
        self._log_prob += log_prob
        if self.end is not None:
            self._close(written.text)
        elif self._is_at_least(self.min_confidence):
            return False
        else:
            self._fall(written, delta)
        return not self._is_at_least(self.min_later if self._is_later else self.min_line)

    def end_line(self, text: str) -> None:
        """Extend what stays by the line that `text` ends with, unless it goes on below."""
        if not self._is_cut(text):
            self.end = self.told = len(text.rstrip())
            self._log_prob, self._is_open, self._is_later = 0.0, False, True
        elif self.end is None:
            self.told = self._standing(text)

    def held(self, written: Written) -> int:
        """Number of characters that stay, whatever follows."""
        if self.end is not None:
            return min(self.end, len(written.text))
        end = written.line_start if written.lines else word_start(written.text)
        return self._standing(written.text[:end])

    def _fall(self, written: Written, delta: str) -> None:
        """Let the text stay up to the first unsure token, in a later line up to that line."""
        is_whole = delta.startswith("\n") or not written.lines
        end = _cut(written.text, delta) if is_whole else written.line_start
        self.end = self.told = self._standing(written.text[:end])
        self._is_open = not written.lines and self._opens(written.text[:end])

    def _close(self, text: str) -> None:
        """Extend what stays once all is closed that was open where the text became unsure."""
        if self._is_open and not self._is_cut(text):
            self.end = self.told = len(text.rstrip())
            self._is_open = False

    def _opens(self, text: str) -> bool:
        return any(start >= len(self.before) for start in _opened(self.before + text))

    def _is_at_least(self, limit: float) -> bool:
        return limit == 0 or self._log_prob >= math.log(limit)  # false for NaN

    def _standing(self, text: str) -> int:
        """The end of the text before its first open bracket or quote; blocks may stay open."""
        around, own = self.before + text, len(self.before)
        opened = (start for start in _opened(around) if not _BLOCK.match(around, start))
        first = min((start for start in opened if start >= own), default=len(around))
        return len(around[own:first].rstrip())

    def _is_cut(self, text: str) -> bool:
        """Whether the text ends in a string, a block of its own or an unfinished statement."""
        around = self.before + text
        is_open = self._opens(text) or balance(around).quote is not None
        line = last_line(around.rstrip())
        return is_open or ends_in_joint(line) or _HALF_HEADER.fullmatch(line) is not None


def ends_in_joint(line: str) -> bool:
    """Whether a line ends with an operator, or with a word that needs another one."""
    return _JOINT.fullmatch(line.rstrip()) is not None


def _opened(text: str) -> tuple[int, ...]:
    found = balance(text)
    return found.starts if found.quote_start is None else (*found.starts, found.quote_start)


def _cut(text: str, refused: str) -> int:
    """End of `text` before a refused token, never in a word; an empty one begins a character."""
    goes_on = not refused or _is_in_word(refused[0])
    return word_start(text) if goes_on else len(text)


def word_start(text: str) -> int:
    """Start of the word at the end of `text`; the end itself if there is none."""
    end = len(text)
    while end and _is_in_word(text[end - 1]):
        end -= 1
    return end


def _is_in_word(character: str) -> bool:
    """Whether a character continues a word; in scripts without capitals each is a word."""
    has_case = character.lower() != character.upper()
    return has_case or character.isdecimal() or character == "_"
