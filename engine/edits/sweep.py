"""Prompts of Sweep's next-edit models, and the rules by which Sweep refuses answers.

Sources: `autocomplete/next_edit_autocomplete.py` of sweep-autocomplete 0.1.1 for the 0.5B model,
and `inference.py` beside the weights of v2-7B for the two larger ones. Both are Apache-2.0.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import partial

from engine.edits.block import Block, check_size, lines_of
from engine.edits.edit_prompt import (
    EditedDocument,
    EditPrompt,
    LineEdit,
    Mark,
    Refusal,
    RefusedEditError,
    fitting,
)
from engine.edits.past import earlier_texts
from engine.edits.sweep_context import block_around, cut, shown_changes, shown_file

_SEPARATOR, _CURSOR = "<|file_sep|>", "<|cursor|>"
_STOPS = (_SEPARATOR, "<|endoftext|>")
_SNIPPET_LINES = 25
_SNIPPETS_CHARS = 7168  # of all snippets: 2,048 tokens of 3.5 characters
_LARGE = 5  # lines added and lines deleted
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
        block = block_around(document, self.above, self.below, _STOPS)
        earlier = list(earlier_texts(document, f"{block.text}\n"))
        prefill = _first_line(block) if self.rewrites_above else _lines_above(block)
        path, place = marked(document.path), self._place(block)
        before = earlier[-1].removesuffix("\n") if earlier else block.text
        parts = (
            f"{path}\n{cut(marked(shown_file(document)))}{_snippets(document, marked)}\n"
            f"{shown_changes(document, marked, _SEPARATOR)}\n",
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


def _first_line(block: Block) -> str:
    """The first line and blank ones below it, as far as the cursor."""
    return "".join(_FIRST_LINE.findall(block.before)[:1])


def _lines_above(block: Block) -> str:
    return "".join(f"{line}\n" for line in block.lines[: block.row])


def _snippets(document: EditedDocument, marked: Mark) -> str:
    """Texts of other files, the best one last, and before them the nearest diagnostic."""
    told = []
    for one in document.snippets:
        text = "\n".join(one.text.split("\n")[:_SNIPPET_LINES])
        told.append(f"\n{_SEPARATOR}{marked(one.path)}\n{cut(marked(text))}\n")
    told = fitting(told, min(_SNIPPETS_CHARS, document.room // 4))
    for error in document.task.diagnostics[:1]:
        line = "".join(document.lines[error.line : error.line + 1])
        text = cut(marked(f"{error.message} at line {error.line}:\n{line}"))
        told.append(f"\n{_SEPARATOR}diagnostics\n{text}\n")
    return "".join(reversed(told))


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
    text = (prefill + answer).removesuffix(_SEPARATOR).rstrip("\n").removesuffix(_NO_LINE_END)
    if _CURSOR not in block.text:
        text = text.replace(_CURSOR, "")
    lines = block.with_blank_ends(lines_of(text))
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
