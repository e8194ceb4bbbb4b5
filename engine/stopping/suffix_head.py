"""The first lines behind the cursor: what repeating them proves, and how they stand."""

import re
from dataclasses import dataclass
from typing import Self

from engine.stopping.lines import Line, filled_lines

LETTERS = 5  # letters and digits that a line needs to be evidence by itself
_MOST_LINES = 4  # of evidence; shifted ones take one more
_SEEN_CHARS = 20_000  # of the file on either side, to know what is repeated
_STEP = 4  # columns that a block is indented by, at most
_NO_WORD = re.compile(r"\W")
_OPENERS = (":", "{", "(", "[", ",")


@dataclass(frozen=True, slots=True)
class SuffixHead:
    """The first filled lines of the suffix, without white space.

    `needed` of them make evidence, 0 if no number does. `before` are the line ends and blank lines
    between the cursor and the first of them; without any, that one is the rest of the cursor's
    line. `space` is the white space it begins with, and `is_whole` tells that this is all of its
    indentation: the cursor stands at the line's start, not inside the indentation. `word` is the
    rest of the word that the cursor stands in.
    """

    words: tuple[str, ...] = ()
    needed: int = 0
    before: str = ""
    space: str = ""
    is_whole: bool = False
    word: str = ""

    @classmethod
    def of(cls, prefix: str, suffix: str) -> Self:
        """Read the head of `suffix`."""
        lines = filled_lines(suffix[:_SEEN_CHARS])
        if not lines:
            return cls()
        first, *later = lines
        words = tuple(line.words for line in lines[: _MOST_LINES + 1])
        others = [*filled_lines(prefix[-_SEEN_CHARS:]), *later]
        around = "\n".join(line.words for line in others) + "\n"
        return cls(
            words,
            needed=_evidence(words[:_MOST_LINES], around),
            before=suffix[: first.start],
            space=first.space,
            is_whole=_stands_whole(first, others, later),
            word=_NO_WORD.split(suffix, maxsplit=1)[0],
        )

    @property
    def is_on_cursor_line(self) -> bool:
        """The first line is the rest of the cursor's."""
        return bool(self.words) and not self.before

    @property
    def is_all(self) -> bool:
        """There is nothing behind these lines."""
        return len(self.words) <= _MOST_LINES


def num_letters(words: str) -> int:
    """Letters and digits."""
    return sum(character.isalnum() for character in words)


def _evidence(words: tuple[str, ...], around: str) -> int:
    """How many of the first lines have to be repeated; what stands `around` too proves little."""
    letters = 0
    for count, word in enumerate(words, 1):
        letters += num_letters(word)
        if letters >= LETTERS and "\n".join([*words[:count], ""]) not in around:
            return count
    return len(words) if letters >= LETTERS else 0


def _stands_whole(line: Line, others: list[Line], later: list[Line]) -> bool:
    """The line is indented by full steps, and the next line fits to it."""
    step = min((indent for other in others if (indent := other.indent) > 1), default=0)
    if not line.indent or not step or line.indent % step:
        return False
    if not later:
        return True
    deeper = later[0].indent - line.indent
    return 0 < deeper <= _STEP if line.text.endswith(_OPENERS) else deeper <= 0
