"""The cursor's block left: a line less indented than the code on both sides of the cursor."""

from dataclasses import dataclass
from typing import Self

from engine.text.lines import Written, first_of_last, indent_of, last_line

_NEAR = 2000  # characters of the file that are looked at


@dataclass(frozen=True, slots=True)
class IndentationRule:
    """How shallow a line may be.

    `floor` is the least indentation of the block on either side of the cursor, or at an empty line
    in the text itself. A block whose file goes on at the margin may be left as well, but not after
    a blank line: then something new begins.
    """

    floor: int
    is_block: bool  # the cursor stands deeper than the margin
    is_free: bool  # the cursor's line is empty, so the text's first line says how deep it stands

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
        """Where the line that leaves the block begins, if the growing line does."""
        line = written.growing
        if line is None or not written.lines:
            return None  # the first line is the cursor's own
        if self.is_block and not line.indent:
            before = last_line(written.text[: line.start - 1])
            if not before.strip():
                return line.start
        if line.words.startswith("#"):
            return None  # preprocessor lines and comments stand where they like
        floor = min(self.floor, written.lines[0].indent) if self.is_free else self.floor
        return line.start if line.indent < floor else None


def shallow_cut(written: Written, least: int) -> int | None:
    """Where the latest line begins, if it is not the first and less white space leads it in."""
    lines = written.lines[-1:] if written.at_line_end else []
    line = written.growing or next(iter(lines), None)
    is_shallow = line is not None and line.start > 0 and len(line.space) < least
    return line.start if line is not None and is_shallow else None


def _block_indent(prefix: str) -> int:
    """Indentation of the cursor's line, or where it is empty of the line before."""
    current = last_line(prefix)
    if current and not current.strip():
        return indent_of(current)
    return indent_of(first_of_last(["", *filter(str.strip, prefix[-_NEAR:].split("\n"))]))
