"""Ends a text where it becomes too unlikely as a whole.

Its probability is the product of its tokens'. The text that stays closes everything that it opened.
If only a closer is unsure, or the words cannot stand, a lower limit lets the line or block finish.
"""

import math
import re
from dataclasses import dataclass, field

from engine.text.brackets import balance
from engine.text.lines import Written, last_line

# Shares of the limit to end a line. On ten typed traces 29 % were wrong; with 0.6 for both, 36 %.
_CLOSING_SHARE = 0.6  # if a closer or a sign inside open brackets is unsure
_CUT_SHARE = 0.8  # if the words cannot stand
_FINISHING = re.compile(r" *[)\]}>\"'`;:,\n]")  # begins a token that finishes the text before it
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
    """Keeps the product of the tokens' probabilities at least at `min_confidence`, 0 to 1."""

    min_confidence: float
    before: str = ""  # the cursor's line up to the cursor
    sure: str | None = None  # the text that stays, once the product has fallen
    _log_prob: float = field(default=0.0, init=False)  # of the text so far
    _is_open: bool = field(default=False, init=False)  # `sure` ends before something open
    _share: float = field(default=1.0, init=False)  # of the limit, once the product has fallen

    def ends(self, written: Written, delta: str, log_prob: float) -> bool:
        """Add a token's text and log-probability; return whether the text ends, as `sure`."""
        self._log_prob += log_prob
        if self.sure is not None:
            self._close(written.text)
            return not self._is_at_least(self._share * self.min_confidence)
        if self._is_at_least(self.min_confidence):
            return False
        is_whole = delta.startswith("\n") or not written.lines
        end = _cut(written.text, delta) if is_whole else written.line_start
        self.sure = self._standing(written.text[:end])
        self._is_open = not written.lines and self._opens(written.text[:end])
        is_blank = not self.sure.strip()
        if not written.lines and (self._is_open or is_blank) and _FINISHING.match(delta):
            self._share = _CLOSING_SHARE
        elif not is_blank and self._is_cut(self.sure):
            self._share = _CUT_SHARE
        return not self._is_at_least(self._share * self.min_confidence)

    def is_finished(self, written: Written) -> bool:
        """Whether the unsure line is finished by this line end; extends `sure` to it."""
        if self.sure is None:
            return False
        self.sure = self._standing(written.text)
        return not self._is_cut(written.text)

    def held(self, written: Written) -> int:
        """Number of characters that stay, whatever follows."""
        if self.sure is not None:
            return len(self.sure)
        end = written.line_start if written.lines else word_start(written.text)
        return len(self._standing(written.text[:end]))

    def _close(self, text: str) -> None:
        """Extend `sure` once all is closed that was open where the text became unsure."""
        if self._is_open and not self._opens(text):
            self.sure, self._is_open = text.rstrip(" \t"), False

    def _opens(self, text: str) -> bool:
        return any(start >= len(self.before) for start in _opened(self.before + text))

    def _is_at_least(self, limit: float) -> bool:
        return limit == 0 or self._log_prob >= math.log(limit)  # false for NaN

    def _standing(self, text: str) -> str:
        """The text up to its first open bracket or quote; braces of blocks may stay open."""
        around, own = self.before + text, len(self.before)
        opened = (start for start in _opened(around) if not _BLOCK.match(around, start))
        first = min((start for start in opened if start >= own), default=len(around))
        return around[own:first].rstrip(" \t")

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
