"""How deep lines stand, in columns, and what a document indents by."""

from collections import Counter
from collections.abc import Iterable, Sequence

TAB = "\t"
_TAB_WIDTH = 4  # columns; only comparisons matter, and a file seldom mixes tabs with blanks
_UNITS = (2, 3, 4, 8)


def leading_space(line: str) -> str:
    """The white space that a line begins with."""
    return line[: len(line) - len(line.lstrip())]


def columns(space: str) -> int:
    """The width of white space."""
    return len(space.expandtabs(_TAB_WIDTH))


def indent_of(line: str) -> int:
    """Columns before the first character that is not white space."""
    return columns(leading_space(line))


def next_filled(lines: Sequence[str], start: int, most: int = 50) -> str | None:
    """The first line from `start` on that is not blank, if it is among the next `most`."""
    return next(filter(str.strip, lines[start : start + most]), None)


def indent_unit(lines: Iterable[str]) -> str | None:
    """A tab or the blanks that one step of indentation has; None where no line tells."""
    steps: Counter[str] = Counter()
    previous = 0
    for line in filter(str.strip, lines):
        space = leading_space(line)
        if space.startswith(TAB):
            steps[TAB] += 1
        elif len(space) - previous in _UNITS:
            steps[" " * (len(space) - previous)] += 1
        previous = columns(space)
    return steps.most_common(1)[0][0] if steps else None
