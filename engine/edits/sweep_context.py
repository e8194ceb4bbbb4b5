"""What Sweep shows of a document: a block around the cursor, the file and the last edits."""

import re
from collections.abc import Sequence
from itertools import accumulate

from engine.edits.block import MOST_LINE, Block, num_blank
from engine.edits.edit_prompt import EditedDocument, fitting
from engine.edits.past import lines_before_edits, telling_edits
from engine.request import PastEdit

SMALL_EDITS, LARGE_EDITS = 6, 10  # shown to the 0.5B model, and to the larger ones
_WHOLE_LINES = 800  # a longer file is shown by a part
_PART_LINES = 300  # halved until they have room
_LEAST_LINES = 20
_STEP, _AROUND = 40, 50  # lines: the larger models see so many around each step of 40
_BLOCK_CHARS = 1792  # from the cursor's line on: half of the 1,024 tokens of an answer


def block_around(document: EditedDocument, above: int, below: int, taken: Sequence[str]) -> Block:
    """Lines around the cursor, without blank ones at both ends except the cursor's.

    They must not contain what is `taken`. Raises RefusedEditError.
    """
    lines, row = document.lines, document.row
    first, end = max(0, row - above), min(len(lines), row + below + 1)
    blank = num_blank(lines[first:row])
    first, end = first + blank, min(len(lines), end + blank)
    end -= num_blank(lines[row + 1 : end][::-1])
    sizes = accumulate(len(line) + 1 for line in lines[row:end])
    end = row + max(1, sum(size <= _BLOCK_CHARS for size in sizes))
    return Block.of(document, first, end, taken)


def shown_file(document: EditedDocument) -> str:
    """The file before the user's edits; of a long one a part that stays while the cursor moves."""
    lines, room = lines_before_edits(document), document.room // 2
    num_all = len(lines) - (lines[-1:] == [""])
    if num_all <= _WHOLE_LINES:
        text = "\n".join(lines)
        if len(text) <= room:
            return text
    num_lines = _PART_LINES
    while True:
        stride = num_lines // 2
        start = stride * max(0, round((document.row - stride) / stride))
        part = "\n".join(lines[start : min(start + num_lines, num_all)])
        if len(part) <= room or num_lines <= _LEAST_LINES:
            return part
        num_lines = stride


def shown_part(document: EditedDocument) -> str:
    """Lines around the cursor before the user's edits, which stay while it moves a little."""
    first = document.row // _STEP * _STEP
    lines = lines_before_edits(document)[max(0, first - _AROUND) : first + _STEP + _AROUND]
    part = "\n".join(lines)
    return part if len(part) <= document.room // 2 else shown_file(document)


def shown_changes(
    document: EditedDocument, separator: str = "", num_edits: int = SMALL_EDITS
) -> str:
    """The last edits, each behind the separator."""
    edits = telling_edits(document)[: -num_edits - 1 : -1]
    changes = (separator + document.marked(_change(one)) for one in edits)
    return "\n".join(reversed(fitting(changes, document.room // 4))).rstrip("\n")


def _change(edit: PastEdit) -> str:
    """One change with a line around it. Numbers are those of the hunk, without its first line."""
    above, below = edit.above[-1:], edit.below[:1]
    first = edit.line - len(edit.above) + 1
    last = edit.line + len(edit.new) + len(edit.below)
    last -= bool(edit.above or not edit.old)  # Sweep's server does not count such a line
    old, new = (
        cut("\n".join((*above, *lines, *below)).strip("\n")) for lines in (edit.old, edit.new)
    )
    return f"{edit.path}:{first}:{last}\noriginal:\n{old}\nupdated:\n{new}"


def cut(text: str) -> str:
    """Leave out the rest of long lines."""
    return re.sub(rf"^(.{{{MOST_LINE}}}).+", r"\1...", text, flags=re.MULTILINE)
