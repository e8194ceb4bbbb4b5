"""The first lines behind the cursor: what repeating them proves, and how they stand."""

import re
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Self

from engine.stopping.lines import Line, each_filled_line, filled_lines

LETTERS = 5  # letters and digits that a line needs to be evidence by itself
_MOST_LINES = 4  # of evidence; shifted ones take one more
_SEEN_CHARS = 20_000  # of the file on either side, to know what is repeated
_STEP = 4  # columns that a block is indented by, at most
_NO_WORD = re.compile(r"\W")
_OPENERS = (":", "{", "(", "[", ",")


@dataclass(frozen=True)
class SuffixHead:
    """The first filled lines of the suffix, without white space.

    `before` are the line ends and blank lines between the cursor and the first of them; without
    any, that one is the rest of the cursor's line. `space` is the white space it begins with.
    `word` is the rest of the word that the cursor stands in.
    """

    words: tuple[str, ...] = ()
    before: str = ""
    space: str = ""
    word: str = ""
    _around: tuple[str, str] = ("", "")  # the file on either side

    @classmethod
    def of(cls, prefix: str, suffix: str) -> Self:
        """Read the head of `suffix`."""
        lines = list(islice(each_filled_line(suffix[:_SEEN_CHARS]), _MOST_LINES + 1))
        if not lines:
            return cls()
        return cls(
            words=tuple(line.words for line in lines),
            before=suffix[: lines[0].start],
            space=lines[0].space,
            word=_NO_WORD.split(suffix, maxsplit=1)[0],
            _around=(prefix[-_SEEN_CHARS:], suffix[:_SEEN_CHARS]),
        )

    # What follows needs all that is seen of the file, and few completions reach a line that asks.

    @cached_property
    def needed(self) -> int:
        """How many of the lines make evidence, 0 if no number does."""
        if not self.words:
            return 0
        _, others, _ = self._lines
        around = "\n".join(line.words for line in others) + "\n"
        return _evidence(self.words[:_MOST_LINES], around)

    @cached_property
    def is_whole(self) -> bool:
        """Whether `space` is all of the first line's indentation.

        Then the cursor stands at the line's start, not inside the indentation.
        """
        return bool(self.words) and _stands_whole(*self._lines)

    @cached_property
    def _lines(self) -> tuple[Line, list[Line], list[Line]]:
        """The first line, all others, and of these the ones behind it."""
        prefix, suffix = self._around
        first, *later = filled_lines(suffix)
        return first, [*filled_lines(prefix), *later], later

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
