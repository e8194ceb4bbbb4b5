"""What the model is sure of: the text ends before the word that makes it too unlikely as a whole.

A text is as likely as the product of its tokens' probabilities. Verification has them for drafted
tokens too, so the text ends at the same place with lookahead and without.
"""

import math
from dataclasses import dataclass, field

from engine.stopping.lines import Written


@dataclass(slots=True)
class ConfidenceRule:
    """The product of the tokens' probabilities stays at `min_confidence`, within 0 and 1, or above."""

    min_confidence: float
    _log_least: float = field(init=False)
    _log_prob: float = field(default=0.0, init=False)  # of the text so far

    def __post_init__(self) -> None:
        self._log_least = math.log(self.min_confidence)

    def falls(self, log_prob: float) -> bool:
        """Add a token's log-probability; tell whether the text with it is too unlikely."""
        self._log_prob += log_prob
        return not self._log_prob >= self._log_least  # what is no number is not sure

    @staticmethod
    def cut(text: str, refused: str) -> int:
        """Where `text` ends if `refused` does not follow: half a word is not left behind.

        An empty one is the beginning of a character.
        """
        goes_on = not refused or _is_in_word(refused[0])
        return _word_start(text) if goes_on else len(text)

    @staticmethod
    def held(written: Written) -> int:
        """How much of the text no later `cut` can take back."""
        return _word_start(written.text)


def _word_start(text: str) -> int:
    """Where the word begins that `text` ends with; its end where it ends with none."""
    end = len(text)
    while end and _is_in_word(text[end - 1]):
        end -= 1
    return end


def _is_in_word(character: str) -> bool:
    """Scripts without capitals often have no blanks either: there a character is a word."""
    has_case = character.lower() != character.upper()
    return has_case or character.isdecimal() or character == "_"
