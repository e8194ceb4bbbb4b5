"""The suffix reached: the text's last lines repeat the first lines behind the cursor.

White space is ignored. How many lines it takes depends on what they say: a closing bracket, a
lone keyword or a line that the file repeats is no evidence, so more lines have to agree.
"""

from dataclasses import dataclass
from typing import Self

from engine.decoding.stopping.lines import (
    Line,
    filled_lines,
    indent_of,
    leading_space,
    line_start,
    squeeze,
)

_LETTERS = 5  # letters and digits that a line needs to be evidence by itself
_MOST_LINES = 4  # of evidence; shifted ones take one more
_SEEN_CHARS = 20_000  # of the file on either side, to know what is repeated
_STEP = 4  # columns that a block is indented by, at most
_OPENERS = (":", "{", "(", "[", ",")


@dataclass(frozen=True, slots=True)
class SuffixRule:
    """The first filled lines behind the cursor, squeezed, and how they stand."""

    words: tuple[str, ...]
    before: str  # line ends and blank lines between the cursor and the first of them
    indent: str  # the white space that the first of them begins with
    is_whole: bool  # that is all its indentation: the cursor does not stand inside it
    needed: int  # how many of them are evidence; 0: no number is

    @classmethod
    def of(cls, prefix: str, suffix: str) -> Self:
        """Read the head of `suffix` and how much of it is evidence."""
        lines = filled_lines(suffix[:_SEEN_CHARS])
        if not lines:
            return cls((), "", "", is_whole=False, needed=0)
        first, *later = lines
        words = tuple(line.words for line in lines[: _MOST_LINES + 1])
        others = [*filled_lines(prefix[-_SEEN_CHARS:]), *later]
        return cls(
            words=words,
            before=suffix[: first.start],
            indent=leading_space(first.text),
            is_whole=_stands_whole(first, others, later),
            needed=_evidence(words[:_MOST_LINES], "\n".join(line.words for line in others) + "\n"),
        )

    def cut(self, text: str) -> int | None:
        """Where `text`, which ends with a line end, reaches the suffix, if it does."""
        if not self.needed:
            return None
        lines = filled_lines(text)
        cut = self._match(lines, self.needed, text)
        if cut is not None and self._is_aligned(lines[-self.needed]):
            return cut
        # Shifted lines may belong to another block: one more has to agree.
        return self._match(lines, self.needed + 1, text)

    def overlap(self, text: str) -> int:
        """Where a repeat begins that would be too little to stop for; else the text's end.

        For a text that ends anyhow: then little tells that its last lines are the suffix's first.
        """
        lines = filled_lines(text)
        for count in range(len(self.words), 0, -1):
            cut = self._match(lines, count, text)
            if cut is not None and self._is_likely(lines[-count], count, text):
                return cut
        return len(text)

    def _is_likely(self, first: Line, count: int, text: str) -> bool:
        letters = _num_letters("".join(self.words[:count]))
        if letters >= _LETTERS or _closes_too_much(text):
            return True
        if first.words == self.words[0]:
            return self._is_aligned(first)
        return letters > 0 and count == len(self.words) <= _MOST_LINES  # all there is

    def held(self, text: str) -> int:
        """How much of `text` no later `cut` or `overlap` can take back."""
        lines = filled_lines(text)
        growing = lines.pop() if text[line_start(text) :].strip() else None
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
        if count > min(len(lines), len(self.words)):
            return None
        first, *rest = lines[-count:]
        if tuple(line.words for line in rest) != self.words[1:count]:
            return None
        if not (first.words == self.words[0] or self._may_end_a_line(first)):
            return None
        return self._place(first, _tail_of(first.text, self.words[0]), text)

    def _is_aligned(self, line: Line) -> bool:
        """The line stands as deep as the suffix's first, as far as that can be told."""
        in_mid_line = line.words != self.words[0] or self.indent == ""
        return in_mid_line or leading_space(line.text) == self.indent

    def _may_end_a_line(self, line: Line) -> bool:
        return self.before == "" and line.words.endswith(self.words[0])

    def _place(self, line: Line, column: int, text: str) -> int:
        """The end of what stands before the suffix, whose text begins at `column` of `line`."""
        if self.before == "":
            ahead = line.text[:column]
            space = len(ahead) - len(ahead.rstrip())
            is_new_line = line.start > 0 and space == len(ahead)
            fits = ahead.endswith(self.indent) and not (is_new_line and self.is_whole)
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


def _evidence(words: tuple[str, ...], around: str) -> int:
    """How many of the suffix's first lines have to be repeated; 0 if no number is enough.

    `around` are the file's other lines, squeezed: what stands there as well tells little.
    """
    letters = 0
    for count, word in enumerate(words, 1):
        letters += _num_letters(word)
        if letters >= _LETTERS and "\n".join([*words[:count], ""]) not in around:
            return count
    return len(words) if letters >= _LETTERS else 0


def _num_letters(words: str) -> int:
    return sum(character.isalnum() for character in words)


def _closes_too_much(text: str) -> bool:
    """More brackets are closed than opened, as by a model that writes what is there already."""
    return any(text.count(closer) > text.count(opener) for opener, closer in ("()", "[]", "{}"))


def _stands_whole(line: Line, others: list[Line], later: list[Line]) -> bool:
    """The suffix's first line has all of its indentation: full steps, and the next line fits."""
    indent = indent_of(line.text)
    depths = [indent_of(other.text) for other in others]
    step = min((depth for depth in depths if depth > 1), default=0)
    if not indent or not step or indent % step:
        return False
    if not later:
        return True
    deeper = indent_of(later[0].text) - indent
    return 0 < deeper <= _STEP if line.text.rstrip().endswith(_OPENERS) else deeper <= 0
