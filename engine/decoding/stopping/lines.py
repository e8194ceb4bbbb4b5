"""Text by lines, for the stop rules: what a line says, how deep it stands, where it begins."""

from typing import NamedTuple

_TAB = 4  # columns; only comparisons matter, and a file seldom mixes tabs with blanks


class Line(NamedTuple):
    """One line that is not blank: its text without the line end, and where it begins."""

    text: str
    start: int

    @property
    def words(self) -> str:
        """The line without any white space: what must agree when two lines are compared."""
        return squeeze(self.text)


def squeeze(text: str) -> str:
    """All white space removed."""
    return "".join(text.split())


def indent_of(line: str) -> int:
    """Columns before the first character that is not white space."""
    return len(leading_space(line).expandtabs(_TAB))


def leading_space(line: str) -> str:
    """The white space that a line begins with."""
    return line[: len(line) - len(line.lstrip())]


def filled_lines(text: str) -> list[Line]:
    """The lines that are not blank, the last one also when its end is missing."""
    lines, start = [], 0
    for text_line in text.split("\n"):
        if text_line.strip():
            lines.append(Line(text_line, start))
        start += len(text_line) + 1
    return lines


def line_start(text: str) -> int:
    """Where the last line of `text` begins."""
    return text.rfind("\n") + 1


def without_trailing_blank(text: str) -> str:
    """Blank lines at the end removed; the last line's own end stays."""
    kept = text.rstrip()
    return kept + "\n" if "\n" in text[len(kept) :] else kept
