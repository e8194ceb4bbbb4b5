"""The cursor's block left: a line less indented than the code on both sides of the cursor."""

from dataclasses import dataclass
from typing import Self

from engine.decoding.stopping.lines import filled_lines, indent_of, line_start


@dataclass(frozen=True, slots=True)
class IndentationRule:
    """How shallow a line may be.

    `floor` is the least indentation that belongs to the place: neither the line at the cursor nor
    the next line of the suffix is shallower. A block whose file goes on at the margin may be left
    as well, but not after a blank line: then something new begins.
    """

    floor: int
    is_block: bool  # the cursor stands deeper than the margin

    @classmethod
    def of(cls, prefix: str, suffix: str) -> Self:
        """Read the indentation around the cursor."""
        block = _cursor_indent(prefix)
        following = _following_indent(suffix)
        return cls(min(block, following), is_block=block > 0)

    def cut(self, text: str) -> int | None:
        """Where the line that leaves the block begins, if the last line of `text` does."""
        start = line_start(text)
        line = text[start:]
        if not line.strip() or line.lstrip().startswith("#"):
            return None  # preprocessor lines and comments stand where they like
        before = text[:start]
        if not before.strip():
            return None  # the first line is the cursor's own
        indent = indent_of(line)
        is_new = self.is_block and indent == 0 and before.endswith(("\n\n", "\n\r\n"))
        return start if indent < self.floor or is_new else None


def _cursor_indent(prefix: str) -> int:
    """Indentation of the cursor's line, or where it is blank of the line before."""
    current = prefix[line_start(prefix) :]
    if current.strip() or current:
        return indent_of(current)
    lines = filled_lines(prefix[-2000:])
    return indent_of(lines[-1].text) if lines else 0


def _following_indent(suffix: str) -> int:
    """Indentation of the first filled line that the suffix begins, 0 without one."""
    lines = filled_lines(suffix.partition("\n")[2][:2000])
    return indent_of(lines[0].text) if lines else 0
