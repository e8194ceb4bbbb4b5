"""The block at the cursor ended: what follows is its neighbour, which nobody asked for.

Stricter than the indentation rule, which lets a text go on as far as the file behind the cursor
does: here a method's body ends with the method, also where other methods follow.
"""

import re
from dataclasses import dataclass
from typing import NamedTuple, Self

from engine.stopping.lines import Line, Written, filled_lines, last_line

_NEAR = 4000  # characters before the cursor that are looked at
_QUOTED = re.compile(r"\"[^\"\n]*\"|'[^'\n]*'")
_OPENS = re.compile(r"(.*[:{]|.*(=>|->|=)|(.*\b)?(then|do|begin|else))(\s*(#|//).*)?")
_END_WORD = re.compile(r"(end|fi|done|esac)\b[;,)]*")
_CLOSES = re.compile(rf"[)\]}}]+[;,]?|{_END_WORD.pattern}")
_GOES_ON = re.compile(
    r"[)\]}]|(elif|else|elsif|except|rescue|ensure|finally|catch|case|default|end|fi|done|esac"
    r"|until)\b|(public|private|protected):"
)
_DIRECTIVE = re.compile(r"#\s*(if|el|end|def|undef|inc|pragma|region|line|error)")
_BEGUN = re.compile(r"#\s*\w*|\w+|[)\]}]+[;,]?")  # what may become another word or line yet


class Judged(NamedTuple):
    """What the text so far says."""

    cut: int | None = None  # where the neighbour begins
    held: int | None = None  # where a line begins of which that cannot be told yet


@dataclass(frozen=True, slots=True)
class BlockRule:
    """The block is the one that the cursor's line opens, or else the one that it stands in."""

    before: str  # the cursor's line up to it
    indent: int  # of the statement that line is a part of
    outer: tuple[int, ...]  # indentation of the blocks around it, the innermost first

    @classmethod
    def of(cls, prefix: str) -> Self:
        """Read what stands before the cursor."""
        before, near = last_line(prefix), prefix[-_NEAR:]
        lines = filled_lines(near)
        first = _statement(lines) if before.strip() else len(lines)
        indent = lines[first].indent if first < len(lines) else 0
        return cls(before, indent, _chain(lines[:first]))

    def judge(self, written: Written) -> Judged:
        """Find the neighbour, or the line that may become one."""
        lines = filled_lines(self.before + written.text)
        if not lines:
            return Judged()
        is_header = bool(self.before.strip())
        depth = self.indent if is_header else lines[0].indent
        is_opened = is_header and _OPENS.fullmatch(lines[0].text) is not None
        floor = next((indent for indent in self.outer if indent < depth), -1)
        for number, line in enumerate(lines[1:], 2):
            if line.indent > depth or _DIRECTIVE.match(line.words):
                continue
            text, start = line.text.strip(), line.start - len(self.before)
            is_growing = number == len(lines) and written.growing is not None
            if is_growing and _BEGUN.fullmatch(text) and (is_opened or line.indent < depth):
                return Judged(held=start)
            if line.indent == depth:
                if _GOES_ON.match(text):
                    is_opened = is_opened or bool(_OPENS.fullmatch(text) or _END_WORD.match(text))
                elif is_opened:
                    return Judged(cut=start)
            elif line.indent >= floor and _CLOSES.fullmatch(text):
                depth, is_opened = line.indent, True
            else:
                return Judged(cut=start)
        return Judged()


def _statement(lines: list[Line]) -> int:
    """The line in which the last line's statement begins: behind it all round brackets are closed.

    A brace that is open stands around statements.
    """
    depth, first = 0, len(lines) - 1
    for number in range(len(lines) - 1, -1, -1):
        for char in reversed(_QUOTED.sub("", lines[number].text)):
            if char in ")]}":
                depth += 1
            elif char in "([{":
                if depth == 0 and char == "{" and number < len(lines) - 1:
                    return first
                first = number if depth == 0 else first
                depth = max(depth - 1, 0)
    return first


def _chain(lines: list[Line]) -> tuple[int, ...]:
    """The indentations that get smaller and smaller above."""
    chain: list[int] = []
    for line in reversed(lines):
        if not chain or line.indent < chain[-1]:
            chain.append(line.indent)
    return tuple(chain)
