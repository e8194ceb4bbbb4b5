"""The cursor's block left: a line less indented than the code on both sides of the cursor."""

from dataclasses import dataclass
from typing import Self

from engine.decoding.stopping.lines import filled_lines, indent_of, line_start

_NEAR = 2000  # characters of the file that are looked at


@dataclass(frozen=True, slots=True)
class IndentationRule:
    """How shallow a line may be.

    `floor` is the least indentation that the block around the cursor has on either side of it, or
    at an empty line in the text itself. A block whose file goes on at the margin may be left as
    well, but not after a blank line: then something new begins.
    """

    floor: int
    is_block: bool  # the cursor stands deeper than the margin
    is_free: bool  # the cursor's line is empty, so the text's first line says how deep it stands

    @classmethod
    def of(cls, prefix: str, suffix: str) -> Self:
        """Read the indentation around the cursor."""
        block = _cursor_indent(prefix)
        following = _following_indents(prefix, suffix)
        floor = min([block, *following[:1], *(indent for indent in following if indent)])
        # Where nothing follows, only the margin is outside.
        return cls(
            floor if following else min(block, 1), block > 0, not prefix[line_start(prefix) :]
        )

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
        floor = (
            min(self.floor, indent_of(filled_lines(before)[0].text)) if self.is_free else self.floor
        )
        is_new = self.is_block and indent == 0 and before.endswith(("\n\n", "\n\r\n"))
        return start if indent < floor or is_new else None


def _cursor_indent(prefix: str) -> int:
    """Indentation of the cursor's line, or where it is blank of the line before."""
    current = prefix[line_start(prefix) :]
    if current:
        return indent_of(current)
    lines = filled_lines(prefix[-_NEAR:])
    return indent_of(lines[-1].text) if lines else 0


def _following_indents(prefix: str, suffix: str) -> list[int]:
    """Indentation of the filled lines behind the cursor, its own one too if it begins there."""
    current = prefix[line_start(prefix) :]
    following = suffix[:_NEAR] if not current.strip() else suffix[:_NEAR].partition("\n")[2]
    lines = filled_lines(following)
    return [indent_of(line.text) for line in lines]
