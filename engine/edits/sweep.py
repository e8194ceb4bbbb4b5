"""Prompts of Sweep's next-edit models, and the rules by which Sweep refuses answers.

Sources: `autocomplete/next_edit_autocomplete.py` of sweep-autocomplete 0.1.1 for the 0.5B model,
and `inference.py` beside the weights of v2-7B for the two larger ones. Both are Apache-2.0.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import partial
from itertools import accumulate

from engine.edits.block import Block, check_size, lines_of, num_blank
from engine.edits.edit_prompt import (
    EditedDocument,
    EditPrompt,
    LineEdit,
    Refusal,
    RefusedEditError,
    fitting,
)
from engine.edits.past import earlier_texts, lines_before_edits, telling_edits
from engine.request import PastEdit

Mark = Callable[[str], str]

_SEPARATOR, _CURSOR = "<|file_sep|>", "<|cursor|>"
_STOPS = (_SEPARATOR, "<|endoftext|>")
_EDITS = 6  # shown
_WHOLE_LINES = 800  # a longer file is shown by a part
_PART_LINES = 300  # halved until they have room
_LEAST_LINES = 20
_SNIPPET_LINES = 25
_SNIPPETS_CHARS = 7168  # of all snippets: 2,048 tokens of 3.5 characters
_BLOCK_CHARS = 1792  # from the cursor's line on: half of the 1,024 tokens of an answer
_MOST_LINE = 600  # characters; the rest of a longer line is left out
_LARGE = 5  # lines added and lines deleted
_MOST_ADDED = 20  # lines; an answer's further ones are dropped
_FIRST_LINE = re.compile(r"[^\n]*\n*")
_NO_LINE_END = " No newline at end of file"  # Sweep's training data had it by mistake


@dataclass(frozen=True, slots=True)
class SweepFormat:
    """The form of one of Sweep's models."""

    above: int  # lines of the block above the cursor's
    below: int
    rewrites_above: bool  # else the lines above the cursor are given as the answer's beginning

    def prompt(self, document: EditedDocument, marked: Mark = str, /) -> EditPrompt:
        """Lay out a prompt. Raises RefusedEditError."""
        check_size(document.lines)
        block = _block(document, self.above, self.below)
        earlier = list(earlier_texts(document, f"{block.text}\n"))
        prefill = _first_line(block) if self.rewrites_above else _lines_above(block)
        path, place = marked(document.path), self._place(block)
        before = earlier[-1].removesuffix("\n") if earlier else block.text
        parts = (
            f"{path}\n{_cut(marked(_file(document)))}{_snippets(document, marked)}\n"
            f"{_changes(document, marked)}\n",
            f"original/{path}:{place}\n{marked(before)}\n",
            f"current/{path}:{place}\n{block.shown(_CURSOR, marked)}\n",
            f"updated/{path}:{place}\n{marked(prefill)}",
        )
        return EditPrompt(
            text="".join(_SEPARATOR + part for part in parts),
            block=block.text,
            prefill=prefill,
            stops=_STOPS,
            read=partial(_read, block, earlier, prefill),
        )

    def _place(self, block: Block) -> str:
        """Return the numbers in headers: of the block, or as the server of the 0.5B model writes."""
        if not self.rewrites_above:
            return f"{block.first + 1}:{block.first + len(block.lines)}"
        row = min(block.row, len(block.text.rstrip("\n").split("\n")) - 1)
        return f"{row + 1}:{row + len(block.lines) + 1}"


def _block(document: EditedDocument, above: int, below: int) -> Block:
    """Lines around the cursor, without blank ones at both ends except the cursor's."""
    lines, row = document.lines, document.row
    first, end = max(0, row - above), min(len(lines), row + below + 1)
    blank = num_blank(lines[first:row])
    first, end = first + blank, min(len(lines), end + blank)
    end -= num_blank(lines[row + 1 : end][::-1])
    sizes = accumulate(len(line) + 1 for line in lines[row:end])
    end = row + max(1, sum(size <= _BLOCK_CHARS for size in sizes))
    return Block.of(document, first, end, _STOPS)


def _first_line(block: Block) -> str:
    """The first line and blank ones below it, as far as the cursor."""
    return "".join(_FIRST_LINE.findall(block.before)[:1])


def _lines_above(block: Block) -> str:
    return "".join(f"{line}\n" for line in block.lines[: block.row])


def _file(document: EditedDocument) -> str:
    """The file before the user's edits; of a long one a part that stays while the cursor moves."""
    text, room = "\n".join(lines_before_edits(document)), document.room // 2
    lines = text.removesuffix("\n").split("\n")
    num_lines = _PART_LINES
    if len(lines) <= _WHOLE_LINES and len(text) <= room:
        return text
    while True:
        stride = num_lines // 2
        start = stride * max(0, round((document.row - stride) / stride))
        part = "\n".join(lines[start : start + num_lines])
        if len(part) <= room or num_lines <= _LEAST_LINES:
            return part
        num_lines = stride


def _snippets(document: EditedDocument, marked: Mark) -> str:
    """Texts of other files, the best one last, and before them the nearest diagnostic."""
    told = []
    for one in document.snippets:
        text = "\n".join(one.text.split("\n")[:_SNIPPET_LINES])
        told.append(f"\n{_SEPARATOR}{marked(one.path)}\n{_cut(marked(text))}\n")
    told = fitting(told, min(_SNIPPETS_CHARS, document.room // 4))
    for error in document.task.diagnostics[:1]:
        line = "".join(document.lines[error.line : error.line + 1])
        text = _cut(marked(f"{error.message} at line {error.line}:\n{line}"))
        told.append(f"\n{_SEPARATOR}diagnostics\n{text}\n")
    return "".join(reversed(told))


def _changes(document: EditedDocument, marked: Mark) -> str:
    changes = (_change(one, marked) for one in telling_edits(document)[: -_EDITS - 1 : -1])
    return "\n".join(reversed(fitting(changes, document.room // 4))).rstrip("\n")


def _change(edit: PastEdit, marked: Mark) -> str:
    """One change with a line around it. Numbers are those of the hunk, without its first line."""
    above, below = edit.above[-1:], edit.below[:1]
    first = edit.line - len(edit.above) + 1
    last = edit.line + len(edit.new) + len(edit.below)
    last -= bool(edit.above or not edit.old)  # Sweep's server does not count such a line
    old, new = (
        _cut(marked("\n".join((*above, *lines, *below)).strip("\n")))
        for lines in (edit.old, edit.new)
    )
    return f"{_SEPARATOR}{marked(edit.path)}:{first}:{last}\noriginal:\n{old}\nupdated:\n{new}"


def _cut(text: str) -> str:
    """Leave out the rest of long lines."""
    return re.sub(rf"^(.{{{_MOST_LINE}}}).+", r"\1...", text, flags=re.MULTILINE)


def _read(
    block: Block,
    earlier: Sequence[str],
    prefill: str,
    answer: str,
    is_cut: bool,  # noqa: FBT001 -- as EditPrompt.read is called
) -> LineEdit:
    if is_cut:
        raise RefusedEditError(Refusal.TOKEN_LIMIT)
    if not answer:
        raise RefusedEditError(Refusal.EMPTY_ANSWER)
    if answer.startswith("<|"):
        raise RefusedEditError(Refusal.SPECIAL_TOKEN)
    text = prefill + answer
    if text.rstrip("\n").endswith(_NO_LINE_END):
        text = text[: text.index(_NO_LINE_END)]
    if _CURSOR not in block.text:
        text = text.replace(_CURSOR, "")
    answered = lines_of(text.removesuffix(_SEPARATOR))[: len(block.lines) + _MOST_ADDED]
    lines = block.with_blank_ends(answered)
    edit = block.changed_to(lines, earlier)
    _check(block, lines)
    return edit


def _check(block: Block, new: tuple[str, ...]) -> None:
    """Raise RefusedEditError for changes above the cursor that Sweep found to be wrong mostly."""
    above, rest = block.lines[: block.row], block.lines[block.row :]
    is_above = len(new) > len(block.lines) and new[: block.row] == above
    if is_above and new[-len(rest) :] == rest and rest[0].strip() and block.column:
        raise RefusedEditError(Refusal.INSERTION_ABOVE)
    if "\n".join(new).startswith(block.before):
        return
    changes = [
        one for one in SequenceMatcher(None, block.lines, new).get_opcodes() if one[0] != "equal"
    ]
    num_deleted = sum(end - start for _, start, end, _, _ in changes)
    num_added = sum(end - start for *_, start, end in changes)
    if num_deleted > _LARGE and num_added > _LARGE:
        raise RefusedEditError(Refusal.LARGE_CHANGE_ABOVE)
