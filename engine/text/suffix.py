"""Ends a text at the suffix: its last lines repeat the first lines behind the cursor.

A closing bracket, a lone keyword or a line that the file repeats is no evidence by itself.
"""

import re
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Self

from engine.text.brackets import BLOCK_OPENERS, num_open
from engine.text.lines import Line, Written, filled_lines, last_line, squeeze

LETTERS = 5  # letters and digits that a line needs to be evidence by itself
_MOST_LINES = 4  # of evidence; shifted lines need one more
_SEEN_CHARS = 20_000  # of the file on each side, searched for repeated lines
_STEP = 4  # most columns that a block is indented by
_NO_WORD = re.compile(r"\W")


@dataclass(frozen=True)
class SuffixRule:
    """A search for the suffix's first lines at the end of a text."""

    words: tuple[str, ...] = ()  # first filled lines, without white space
    before: str = ""  # blank part up to the first of them; empty if that is on the cursor's line
    space: str = ""  # leading white space of the first
    word: str = ""  # rest of the word at the cursor
    _around: tuple[str, str] = ("", "")  # the file on either side

    @classmethod
    def of(cls, prefix: str, suffix: str) -> Self:
        """Read the beginning of `suffix`."""
        lines = list(islice(filled_lines(suffix[:_SEEN_CHARS]), _MOST_LINES + 1))
        if not lines:
            return cls()
        return cls(
            words=tuple(line.words for line in lines),
            before=suffix[: lines[0].start],
            space=lines[0].space,
            word=_NO_WORD.split(suffix, maxsplit=1)[0],
            _around=(prefix[-_SEEN_CHARS:], suffix[:_SEEN_CHARS]),
        )

    def cut(self, written: Written) -> int | None:
        """Place where the text, at a line end, reaches the suffix; None if it does not."""
        if not self._may_match(written) or not (needed := self._needed):
            return None
        cut = self._match(written, needed)
        if cut is not None and self._is_aligned(written.lines[-needed]):
            return cut
        # Shifted lines may belong to another block: one more has to agree.
        return self._match(written, needed + 1)

    def overlap(self, written: Written) -> int:
        """Start of a repeat in a text that ends anyway, so less evidence will do; else its end."""
        for count in range(len(self.words), 0, -1):
            cut = self._match(written, count)
            if cut is not None and self._is_likely(written, count):
                return cut
        return len(written.text)

    def word_overlap(self, text: str) -> int:
        """Start of a repeat of `word`, for a text that the model has ended; else its end."""
        start = len(text) - len(self.word)
        is_in_word = text[max(start - 1, 0) : start].isalnum()
        repeats = len(self.word) > 1 and is_in_word and text.endswith(self.word)
        return start if repeats else len(text)

    def held(self, written: Written) -> int:
        """Number of characters that no later `cut` or `overlap` can take back."""
        growing = written.growing
        places = [len(written.text)]
        for count, following in enumerate((*self.words, "")):
            if count and (growing is None or following.startswith(growing.words)):
                cut = self._match(written, count)
                places += [] if cut is None else [cut]
        if growing is not None and self.words:
            places.append(self._first_begins(growing, written.text))
        return min(places)

    # This and the next two are cached, as they read all of `_around` and few completions need them.
    @cached_property
    def _lines(self) -> tuple[Line, list[Line], list[Line]]:
        """The suffix's first line, all other lines, and those behind it."""
        prefix, suffix = self._around
        first, *later = filled_lines(suffix)
        return first, [*filled_lines(prefix), *later], later

    @cached_property
    def _needed(self) -> int:
        """Number of lines that are evidence together: more if the file repeats them, 0 if none."""
        words, letters = self.words[:_MOST_LINES], 0
        around = "\n".join(line.words for line in self._lines[1]) + "\n"
        for count, word in enumerate(words, 1):
            letters += num_letters(word)
            if letters >= LETTERS and "\n".join([*words[:count], ""]) not in around:
                return count
        return len(words) if letters >= LETTERS else 0

    @cached_property
    def _is_whole(self) -> bool:
        """Whether `space` is a whole indentation: full steps, to which the next line fits."""
        line, others, later = self._lines
        step = min((indent for other in others if (indent := other.indent) > 1), default=0)
        if not line.indent or not step or line.indent % step:
            return False
        if not later:
            return True
        deeper = later[0].indent - line.indent
        return 0 < deeper <= _STEP if line.text.endswith((*BLOCK_OPENERS, ",")) else deeper <= 0

    @property
    def _is_on_cursor_line(self) -> bool:
        return bool(self.words) and not self.before

    def _may_match(self, written: Written) -> bool:
        """Whether the last line is one of the suffix's first ones, which is rare."""
        if not written.lines or not self.words:
            return False
        words = written.lines[-1].words
        return words in self.words or self._ends_with_first(words)

    def _ends_with_first(self, words: str) -> bool:
        return self._is_on_cursor_line and words.endswith(self.words[0])

    def _match(self, written: Written, count: int) -> int | None:
        """Start of the last `count` lines if they repeat the suffix's first ones."""
        words = self.words[:count]
        lines = written.lines[-count:]
        if not len(lines) == len(words) == count or any(
            line.words != word for line, word in zip(lines[1:], words[1:], strict=True)
        ):
            return None
        first = lines[0]
        if first.words != words[0] and not self._ends_with_first(first.words):
            return None
        return self._place(first, _tail_of(first.text, words[0]), written.text)

    def _is_aligned(self, line: Line) -> bool:
        """Whether the line is indented like the suffix's first, as far as that is known."""
        in_mid_line = line.words != self.words[0] or not self.space
        return in_mid_line or line.space == self.space

    def _is_likely(self, written: Written, count: int) -> bool:
        letters = num_letters("".join(self.words[:count]))
        if letters >= LETTERS or _closes_too_much(written.text):
            return True
        first = written.lines[-count]
        if first.words == self.words[0]:
            return self._is_aligned(first)
        is_all = count == len(self.words) <= _MOST_LINES  # nothing stands behind these lines
        return letters > 0 and is_all

    def _place(self, line: Line, column: int, text: str) -> int:
        """End of the text before the suffix, which begins at `column` of `line`."""
        if self._is_on_cursor_line:
            ahead = line.text[:column]
            blank = len(ahead) - len(ahead.rstrip())
            is_new_line = line.start > 0 and blank == len(ahead)
            fits = ahead.endswith(self.space) and not (is_new_line and self._is_whole)
            return line.start + column - (len(self.space) if fits else blank)
        ahead = text[: line.start]
        lengths = range(len(self.before), 0, -1)
        return line.start - next((n for n in lengths if ahead.endswith(self.before[:n])), 0)

    def _first_begins(self, line: Line, text: str) -> int:
        """Place in the growing line where the suffix's first line may begin."""
        start = len(line.space)
        for column in range(start, len(line.text) if self._is_on_cursor_line else start + 1):
            words = squeeze(line.text[column:])
            if not line.text[column].isspace() and self.words[0].startswith(words):
                return self._place(line, column, text)
        return len(text)


def repeats(prefix: str, suffix: str) -> tuple[str, ...]:
    """Return how texts go on that repeat the first line after the cursor, white space aside."""
    first = next(filled_lines(suffix[:_SEEN_CHARS]), None)
    if first is None:
        return ()
    line, begun = first.text.strip(), last_line(prefix).strip()
    # The cursor's line may have begun like it.
    rest = line.removeprefix(begun).strip() if first.start else ""
    return tuple(dict.fromkeys(filter(None, (line, rest))))


def _tail_of(text: str, words: str) -> int:
    """Column of `text` where the `words` at its end begin."""
    column, left = len(text), len(words)
    while left:
        column -= 1
        left -= not text[column].isspace()
    return column


def _closes_too_much(text: str) -> bool:
    """Whether more brackets are closed than opened, as when a model repeats the suffix."""
    return any(num_open(text, *pair) < 0 for pair in ("()", "[]", "{}"))


def num_letters(words: str) -> int:
    """Count the letters and digits."""
    return sum(character.isalnum() for character in words)
