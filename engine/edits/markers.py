"""Numbered markers between the blocks of a region, by which Zeta 2.1 says what it replaces."""

import re
from collections.abc import Sequence

from engine.edits.block import Block, lines_of
from engine.edits.edit_prompt import Refusal, RefusedEditError

_MARKER = re.compile(r"<\|marker_(\d{1,4})\|>")
_LEAST, _MOST = 6, 16  # lines of a block
_AHEAD = 5  # lines in which a better beginning of a block is looked for
_NO_BEGINNING = re.compile(r"\s*([\]})]|(break|continue|return|throw|end);*\s*$|$)")


def with_markers(block: Block, cursor: str = "") -> str:
    """The block's text with markers, and with `cursor` at the cursor, before a marker there."""
    told = block.shown(cursor).split("\n")
    starts = _starts(block.lines)
    for number, row in enumerate(starts, 1):
        is_behind = row == block.row and not block.column and row
        before = cursor if is_behind else ""
        told[row] = f"{before}<|marker_{number}|>{told[row].removeprefix(before)}"
    return "\n".join(told) + f"<|marker_{len(starts) + 1}|>"


def between_markers(block: Block, answer: str) -> list[str]:
    """The block's lines after an answer. Raises RefusedEditError."""
    marks = list(_MARKER.finditer(answer))
    bounds = [*_starts(block.lines), len(block.lines)]
    numbers = [int(mark[1]) - 1 for mark in marks]
    if len(marks) < 2 or not 0 <= numbers[0] <= numbers[-1] < len(bounds):
        raise RefusedEditError(Refusal.MALFORMED)
    if numbers[0] == numbers[-1]:
        raise RefusedEditError(Refusal.NO_CHANGE)
    text = _MARKER.sub("", answer[marks[0].end() : marks[-1].start()])
    new = lines_of(text) if text else []
    return [*block.lines[: bounds[numbers[0]]], *new, *block.lines[bounds[numbers[-1]] :]]


def _starts(lines: Sequence[str]) -> list[int]:
    """Return the first lines of the blocks: behind blank lines, if these leave blocks of a size."""
    starts, row = [0], 0
    num_lines = len(lines) - (len(lines) > 1 and not lines[-1])
    while row < num_lines:
        size = row - starts[-1]
        is_gap = size >= _LEAST and bool(lines[row].strip()) and not lines[row - 1].strip()
        target = _beginning(lines[:num_lines], row)
        if size >= _MOST or (is_gap and num_lines - target >= _LEAST):
            starts.append(target)
            row = target
        row += 1
    return starts


def _beginning(lines: Sequence[str], row: int) -> int:
    """Return the first line from here on that a block may begin with, if there is one near."""
    near = range(row, min(len(lines), row + _AHEAD))
    return next((one for one in near if not _NO_BEGINNING.match(lines[one])), row)
