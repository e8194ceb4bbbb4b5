"""Going in circles: the same lines, or the same few characters, again and again."""

from engine.decoding.stopping.lines import Line, filled_lines, line_start

_MOST_LINES = 8  # of a block that is repeated
_COPIES = 3  # of a block of several lines
_COPIES_OF_LINE = 4  # of a single line: short runs of equal lines are ordinary code
_UNIT = 32  # characters repeated inside a line
_RUN = 160  # characters that such repeats have to fill


def repetition_cut(text: str) -> int | None:
    """Where the second copy begins, once the lines of `text` are the same again and again."""
    lines = filled_lines(text)
    if not text.endswith("\n"):
        return len(text) if _is_run(text) else None
    for length in range(1, _MOST_LINES + 1):
        copies = _COPIES_OF_LINE if length == 1 else _COPIES
        if _repeated(lines, length) >= length * (copies - 1):
            return lines[len(lines) - length * (copies - 1)].start
    return None


def repetition_held(text: str) -> int:
    """How much of `text` no later `repetition_cut` can take back."""
    lines = filled_lines(text)
    growing = lines.pop() if text[line_start(text) :].strip() else None
    places = [len(text)]
    for length in range(1, min(_MOST_LINES, len(lines)) + 1):
        run = lines[len(lines) - _repeated(lines, length) :]
        if growing is not None:
            if not lines[-length].text.startswith(growing.text):
                continue
            run.append(growing)
        places += [line.start for line in run[:1]]
    return min(places)


def _repeated(lines: list[Line], length: int) -> int:
    """How many lines at the end equal the line `length` before them."""
    count = 0
    for now, then in zip(reversed(lines), reversed(lines[:-length]), strict=False):
        if now.text.rstrip() != then.text.rstrip():
            break
        count += 1
    return count


def _is_run(text: str) -> bool:
    """The last line ends in one short unit, repeated."""
    tail = text[-_RUN:]
    if len(tail) < _RUN or "\n" in tail or not tail.strip():
        return False
    return any(tail[unit:] == tail[:-unit] for unit in range(1, _UNIT + 1))
