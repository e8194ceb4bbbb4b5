"""Text by lines: their words, their indentation and where they begin."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Self

_PIECE = re.compile(r"[^\n]*\n|[^\n]+")
_TAB_WIDTH = 4  # columns; only comparisons matter, and a file seldom mixes tabs with blanks
STEADY_LINES = 16  # between anchors: until the next one, a prompt's start and cached keys stay


class Line(NamedTuple):
    """One line that is not blank, without its line end."""

    text: str
    words: str  # the text without white space, by which lines are compared
    start: int

    @property
    def space(self) -> str:
        """The white space that the line begins with."""
        return leading_space(self.text)

    @property
    def indent(self) -> int:
        """Columns before the first character that is not white space."""
        return indent_of(self.text)


@dataclass(slots=True)
class Written:
    """A growing text cut into lines, as the rules examine its end again and again."""

    text: str = ""
    lines: list[Line] = field(default_factory=list)  # complete lines that are not blank
    line_start: int = 0  # of the growing line

    @classmethod
    def of(cls, text: str) -> Self:
        """Cut a whole text."""
        written = cls()
        for piece in pieces(text):
            written.push(piece)
        return written

    @property
    def at_line_end(self) -> bool:
        """Whether a line has just ended."""
        return self.text.endswith("\n")

    @property
    def growing(self) -> Line | None:
        """The last line if it has no line end yet and is not blank."""
        text = self.text[self.line_start :]
        return Line(text, squeeze(text), self.line_start) if text.strip() else None

    def push(self, piece: str) -> None:
        """Add text that has no line end except at its own end."""
        self.text += piece
        if piece.endswith("\n"):
            text = self.text[self.line_start : -1].rstrip()
            if text:
                self.lines.append(Line(text, squeeze(text), self.line_start))
            self.line_start = len(self.text)


def pieces(text: str) -> list[str]:
    """Split behind every LF; a form feed or U+2028 ends no line of code."""
    return _PIECE.findall(text)


def leading_space(line: str) -> str:
    """The white space that a line begins with."""
    return line[: len(line) - len(line.lstrip())]


def columns(space: str) -> int:
    """The width of white space."""
    return len(space.expandtabs(_TAB_WIDTH))


def indent_of(line: str) -> int:
    """Columns before the first character that is not white space."""
    return columns(leading_space(line))


def squeeze(text: str) -> str:
    """Remove all white space."""
    return "".join(text.split())


def filled_lines(text: str) -> Iterator[Line]:
    """Yield the lines that are not blank; the last one may lack its line end."""
    for match in _PIECE.finditer(text):
        if line := match.group().rstrip():
            yield Line(line, squeeze(line), match.start())


def first_of_last(lines: Sequence[str]) -> str:
    """Return the line that the last one continues; a backslash continues a line."""
    row = len(lines) - 1
    while row and lines[row - 1].endswith("\\"):
        row -= 1
    return lines[row]


def last_line(text: str) -> str:
    """Return the text behind the last line end."""
    return text[text.rfind("\n") + 1 :]


def last_anchor(num_lines: int) -> int:
    """Return the last anchor in so many lines: a multiple of 16, below 16 a power of two."""
    return num_lines // STEADY_LINES * STEADY_LINES or 1 << num_lines.bit_length() >> 1


def steady_before(prefix: str) -> str:
    """Return the whole lines before the last anchor."""
    num_lines = prefix.count("\n")
    end = len(prefix)
    for _ in range(num_lines - last_anchor(num_lines) + 1):
        end = prefix.rfind("\n", 0, end)
    return prefix[: end + 1]


def steady_behind(suffix: str) -> str:
    """Return lines behind the cursor's, from an anchor counted from the end, each after its LF."""
    num_lines = suffix.count("\n")
    skipped = num_lines % STEADY_LINES if num_lines > STEADY_LINES else 0
    start = suffix.find("\n")
    for _ in range(skipped):
        start = suffix.find("\n", start + 1)
    return suffix[start:] if num_lines else ""
