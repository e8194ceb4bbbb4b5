"""Finds endless repetition: of the same lines, or of the same few characters."""

from engine.text.lines import Line, Written, pieces

_MOST_LINES = 8  # of a repeated block
_COPIES = 3  # of a block of several lines
_COPIES_OF_LINE = 4  # of a single line: short runs of equal lines are ordinary code
_UNIT = 32  # characters repeated inside a line
_RUN = 160  # characters that such repeats have to fill
_BLANKS = 100  # white space in a row: more than any indentation


def repetition_cut(written: Written) -> int | None:
    """Start of the second copy, once the same lines come again and again."""
    lines = written.lines
    if not written.at_line_end:
        return len(written.text) if _is_stuck(written.text) else None
    for length in range(1, _MOST_LINES + 1):
        copies = _COPIES_OF_LINE if length == 1 else _COPIES
        if _repeated(lines, length) >= length * (copies - 1):
            return lines[-length * (copies - 1)].start
    return None


def unrepeated(text: str) -> str:
    """Return a finished text with only the first copy of repeated lines or characters."""
    written = Written()
    for piece in pieces(text + "\n"):
        written.push(piece)
        if (cut := repetition_cut(written)) is not None:
            text = text[:cut].rstrip()
            break
    start = _run_start(text)
    return text if start is None else text[:start].rstrip()


def repetition_held(written: Written) -> int:
    """Number of characters that no later `repetition_cut` can take back."""
    lines, growing = written.lines, written.growing
    places = [len(written.text)]
    for length in range(1, min(_MOST_LINES, len(lines)) + 1):
        run = lines[len(lines) - _repeated(lines, length) :]
        if growing is None:
            places += [line.start for line in run[:1]]
        elif lines[-length].text.startswith(growing.text.rstrip()):
            places.append([*run, growing][0].start)
    return min(places)


def _repeated(lines: list[Line], length: int) -> int:
    """Count the lines at the end that equal the line `length` before them."""
    most = len(lines) - length
    count = 0
    while count < most and lines[-1 - count].text == lines[-1 - count - length].text:
        count += 1
    return count


def _is_stuck(text: str) -> bool:
    """Whether the last line ends in endless blanks, or in endless copies of a short unit."""
    if len(text) >= _BLANKS and not text[-_BLANKS:].strip(" \t"):
        return True
    return _run_start(text) is not None


def _run_start(text: str) -> int | None:
    """Start of the run of the same few characters at the last line's end, if there is one."""
    tail = text[-_RUN:]
    if len(tail) < _RUN or "\n" in tail:
        return None
    unit = next((n for n in range(1, _UNIT + 1) if tail[n:] == tail[:-n]), None)
    if unit is None:
        return None
    start = len(text) - _RUN
    while start and text[start - 1] == text[start - 1 + unit]:
        start -= 1
    return start
