"""The suffix reached: the text's last lines repeat the first lines behind the cursor.

White space is ignored. How many lines it takes depends on what they say: a closing bracket, a
lone keyword or a line that the file repeats is no evidence, so more lines have to agree.
"""

from dataclasses import dataclass
from typing import Self

from engine.decoding.stopping.lines import Line, filled_lines, leading_space, line_start, squeeze

_LETTERS = 5  # letters and digits that a line needs to be evidence by itself
_MOST_LINES = 4
_SEEN_CHARS = 20_000  # of the file on either side, to know what is repeated


@dataclass(frozen=True, slots=True)
class SuffixRule:
    """The first filled lines behind the cursor, squeezed, and how they stand."""

    words: tuple[str, ...]
    before: str  # line ends and blank lines between the cursor and the first of them
    indent: str  # the white space that the first of them begins with
    needed: int  # how many of them are evidence; 0: no number is

    @classmethod
    def of(cls, prefix: str, suffix: str) -> Self:
        """Read the head of `suffix` and how much of it is evidence."""
        lines = filled_lines(suffix[:_SEEN_CHARS])
        if not lines:
            return cls((), "", "", 0)
        words = tuple(line.words for line in lines[:_MOST_LINES])
        seen = [line.words for line in filled_lines(prefix[-_SEEN_CHARS:])]
        seen += [line.words for line in lines[1:]]
        first = lines[0]
        needed = _evidence(words, seen)
        return cls(words, suffix[: first.start], leading_space(first.text), needed)

    def cut(self, text: str) -> int | None:
        """Where `text`, which ends with a line end, reaches the suffix, if it does."""
        return self._match(filled_lines(text), self.needed, text) if self.needed else None

    def overlap(self, text: str) -> int:
        """Where the longest repeat of whole lines begins, evidence or not; else the text's end."""
        lines = filled_lines(text)
        for count in range(len(self.words), 0, -1):
            cut = self._match(lines, count, text)
            if cut is not None:
                return cut
        return len(text)

    def held(self, text: str) -> int:
        """How much of `text` no later `cut` or `overlap` can take back."""
        lines = filled_lines(text)
        growing = lines.pop() if lines and text[line_start(text) :].strip() else None
        places = [len(text.rstrip())]
        for count, word in enumerate((*self.words, "")):
            if growing is None or (count > 0 and word.startswith(growing.words)):
                cut = self._match(lines, count, text) if count else None
                places += [] if cut is None else [cut]
        if growing is not None and self.words:
            places.append(self._first_begins(growing, text))
        return min(places)

    def _match(self, lines: list[Line], count: int, text: str) -> int | None:
        """Where the last `count` lines begin to repeat as many of the suffix, if they do."""
        if count > len(lines):
            return None
        first, *rest = lines[-count:]
        if tuple(line.words for line in rest) != self.words[1:count]:
            return None
        if not (first.words == self.words[0] or self._may_end_a_line(first)):
            return None
        return self._place(first, _tail_of(first.text, self.words[0]), text)

    def _may_end_a_line(self, line: Line) -> bool:
        return self.before == "" and line.words.endswith(self.words[0])

    def _place(self, line: Line, column: int, text: str) -> int:
        """The end of what stands before the suffix, whose text begins at `column` of `line`."""
        if self.before == "":
            ahead = line.text[:column]
            space = len(ahead) - len(ahead.rstrip())
            fits = ahead.endswith(self.indent)
            return line.start + column - (len(self.indent) if fits else space)
        ahead = text[: line.start]
        ends = range(len(self.before), 0, -1)
        shared = next((end for end in ends if ahead.endswith(self.before[:end])), 0)
        return line.start - shared

    def _first_begins(self, line: Line, text: str) -> int:
        """Where the suffix's first line may have begun in the line that still grows."""
        columns = range(len(line.text)) if self.before == "" else [len(leading_space(line.text))]
        for column in columns:
            if not line.text[column].isspace() and self.words[0].startswith(
                squeeze(line.text[column:])
            ):
                return self._place(line, column, text)
        return len(text)


def _tail_of(text: str, words: str) -> int:
    """The column of `text` from which it says `words`."""
    column, left = len(text), len(words)
    while left:
        column -= 1
        left -= not text[column].isspace()
    return column


def _evidence(words: tuple[str, ...], seen: list[str]) -> int:
    """How many of the suffix's first lines have to be repeated; 0 if no number is enough."""
    letters = 0
    for count, word in enumerate(words, 1):
        letters += sum(character.isalnum() for character in word)
        is_repeated = any(line.endswith(word) for line in seen)
        if letters >= _LETTERS and not is_repeated:
            return count
    return len(words) if letters >= _LETTERS else 0
