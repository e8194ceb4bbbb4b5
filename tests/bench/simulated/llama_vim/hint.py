"""The part of an answer that is shown (`s:fim_render`)."""

from collections.abc import Sequence


def hint_of(answer: str, lines: Sequence[str], row: int, column: int) -> list[str]:
    """Return the lines shown behind the cursor; empty if there is nothing to accept.

    A backspace at the start is a column of indentation that accepting would remove.
    """
    content = answer.split("\n")
    while content and not content[-1]:
        content.pop()
    if not content:
        return []
    line = lines[row]
    if not line.strip(" \t"):
        content[0], line = _indented(content[0], line, column)
    if _repeats_below(content, lines, row, line[:column]) or content == [line[column:]]:
        return []
    return content if "".join(content).strip() else []


def _indented(first: str, line: str, column: int) -> tuple[str, str]:
    """Replace a blank line's indentation by that of the answer."""
    lead = min(len(first) - len(first.lstrip(" \t")), len(line))
    kept = first[:lead]
    return "\b" * (min(column, len(line)) - lead) + first[lead:], kept


def _repeats_below(content: Sequence[str], lines: Sequence[str], row: int, before: str) -> bool:
    """Whether the answer repeats the text below the cursor's line."""
    following = list(lines[row + 1 : row + len(content)])
    if len(content) > 1 and not content[0] and content[1:] == following:
        return True
    below = row + 1
    while below < len(lines) - 1 and not lines[below].strip(" \t"):
        below += 1
    if below >= len(lines) or before + content[0] != lines[below]:
        return False
    if len(content) == 1:
        return True
    if len(content) == 2:
        return below + 1 < len(lines) and lines[below + 1].startswith(content[1])
    return list(content[1:]) == list(lines[below + 1 : below + len(content)])
