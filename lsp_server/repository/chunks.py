"""Cuts a text into windows of lines, where it has blank lines if it can."""

from collections.abc import Iterator, Sequence

_LINES = 40  # of a window at most
_LEAST = 20  # of one that ends at a blank line


def chunks(lines: Sequence[str]) -> Iterator[range]:
    """The windows of a text, as ranges of line numbers from 0; none of them is blank."""
    start = 0
    while start < len(lines):
        end = _end(lines, start)
        if any(map(str.strip, lines[start:end])):
            yield range(start, end)
        start = end


def _end(lines: Sequence[str], start: int) -> int:
    """Where a window ends: behind the last blank line in its second half, if there is one."""
    longest = start + _LINES
    if longest >= len(lines):
        return len(lines)
    ends = range(longest, start + _LEAST, -1)
    return next((end for end in ends if not lines[end - 1].strip()), longest)
