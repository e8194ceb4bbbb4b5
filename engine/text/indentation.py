"""Ends a text at a line outside the cursor's block: less indented than the code on both sides."""

from dataclasses import dataclass
from typing import Self

from engine.text.lines import Written, first_of_last, indent_of, last_line

_NEAR = 2000  # characters of the file examined on each side


@dataclass(frozen=True, slots=True)
class IndentationRule:
    """The least indentation of a line; one at the margin after a blank line leaves any block."""

    floor: int  # least indentation of the block, by the code on both sides of the cursor
    is_block: bool  # the cursor stands deeper than the margin
    is_free: bool  # the cursor's line is empty, so the text's first line sets the depth

    @classmethod
    def of(cls, prefix: str, suffix: str) -> Self:
        """Read the indentation around the cursor."""
        current = last_line(prefix)
        block = _block_indent(prefix)
        rest = suffix[:_NEAR] if not current.strip() else suffix[:_NEAR].partition("\n")[2]
        following = [indent_of(line) for line in rest.split("\n") if line.strip()]
        floor = min([block, *following[:1], *(indent for indent in following if indent)])
        # Where nothing follows, only the margin is outside.
        return cls(floor if following else min(block, 1), block > 0, not current)

    def cut(self, written: Written) -> int | None:
        """Start of the growing line if it leaves the block."""
        line = written.growing
        if line is None or not written.lines:
            return None  # the first line is the cursor's own
        if self.is_block and not line.indent:
            before = last_line(written.text[: line.start - 1])
            if not before.strip():
                return line.start
        if line.words.startswith("#"):
            return None  # preprocessor lines and comments may stand anywhere
        floor = min(self.floor, written.lines[0].indent) if self.is_free else self.floor
        return line.start if line.indent < floor else None


def shallow_cut(written: Written, least: int) -> int | None:
    """Start of the latest line, except the first, if it begins with less white space."""
    lines = written.lines[-1:] if written.at_line_end else []
    line = written.growing or next(iter(lines), None)
    is_shallow = line is not None and line.start > 0 and len(line.space) < least
    return line.start if line is not None and is_shallow else None


def _block_indent(prefix: str) -> int:
    """Indentation of the cursor's line, or of the line before if it is empty."""
    current = last_line(prefix)
    if current and not current.strip():
        return indent_of(current)
    return indent_of(first_of_last(["", *filter(str.strip, prefix[-_NEAR:].split("\n"))]))
