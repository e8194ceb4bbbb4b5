"""Prompts of Sweep's next-edit models, and the rules by which Sweep refuses answers.

Sources: `autocomplete/next_edit_autocomplete.py` of sweep-autocomplete 0.1.1 for the 0.5B model,
and `inference.py` beside the weights of v2-7B for the two larger ones. Both are Apache-2.0.
"""

import re
from difflib import SequenceMatcher
from functools import partial

from engine.edits.block import Block, lines_of
from engine.edits.edit_prompt import (
    EditedDocument,
    EditPrompt,
    Refusal,
    RefusedEditError,
    fitting,
)
from engine.edits.sweep_context import (
    LARGE_EDITS,
    SMALL_EDITS,
    block_around,
    cut,
    shown_changes,
    shown_file,
    shown_part,
)

_SEPARATOR, _CURSOR = "<|file_sep|>", "<|cursor|>"
_STOPS = (_SEPARATOR, "<|endoftext|>")
_TAKEN = (*_STOPS, _CURSOR)
_SNIPPET_LINES = 25
_SNIPPETS_CHARS = 7168  # of all snippets: 2,048 tokens of 3.5 characters
_LARGE = 5  # lines added and lines deleted
_FIRST_LINE = re.compile(r"[^\n]*\n*")
_NO_LINE_END = " No newline at end of file"  # Sweep's training data had it by mistake


def small_sweep_prompt(document: EditedDocument) -> EditPrompt:
    """Ask the 0.5B model, which also rewrites lines above the cursor. Raises RefusedEditError."""
    block = block_around(document, 2, 5, _TAKEN)
    # The numbers that its server writes.
    row = min(block.row, len(block.text.rstrip("\n").split("\n")) - 1)
    place, file = f"{row + 1}:{row + len(block.lines) + 1}", shown_file(document)
    return _prompt(block, place, file, SMALL_EDITS, _first_line(block))


def sweep_prompt(document: EditedDocument, around: int = 10) -> EditPrompt:
    """Ask a larger model, whose answer begins at the cursor's line. Raises RefusedEditError.

    The block has the lines `around` the cursor's, as many on each side.
    """
    block = block_around(document, around, around, _TAKEN)
    place = f"{block.first + 1}:{block.first + len(block.lines)}"
    prefill = "".join(f"{line}\n" for line in block.lines[: block.row])
    return _prompt(block, place, shown_part(document), LARGE_EDITS, prefill)


def _prompt(block: Block, place: str, file: str, num_edits: int, prefill: str) -> EditPrompt:
    document = block.document
    marked, path = document.marked, document.marked(document.path)
    parts = (
        f"{path}\n{marked(cut(file))}{_snippets(document)}\n"
        f"{shown_changes(document, _SEPARATOR, num_edits)}\n",
        f"original/{path}:{place}\n{marked(_before_edits(block))}\n",
        f"current/{path}:{place}\n{block.shown(_CURSOR)}\n",
        f"updated/{path}:{place}\n{prefill}",
    )
    return block.prompt(
        "".join(_SEPARATOR + part for part in parts),
        _STOPS,
        partial(_answered, prefill),
        prefill=prefill,
        check=partial(_check, block),
    )


def _before_edits(block: Block) -> str:
    """The block before as many of the last edits as its text has room for."""
    most = len(block.text) + block.document.room // 4
    texts = [block.text, *(one.removesuffix("\n") for one in block.earlier)]
    return next(one for one in reversed(texts) if len(one) <= most)


def _first_line(block: Block) -> str:
    """The first line and blank ones below it, as far as the cursor."""
    return "".join(_FIRST_LINE.findall(block.before)[:1])


def _snippets(document: EditedDocument) -> str:
    """Texts of other files, the best one last, and before them the nearest diagnostic."""
    told = []
    for one in document.snippets:
        lines = one.text.split("\n")[:_SNIPPET_LINES]
        shown = cut("\n".join((one.path, *lines)))
        told.append(f"\n{_SEPARATOR}{document.marked(shown)}\n")
    told = fitting(told, min(_SNIPPETS_CHARS, document.room // 4))
    for error in document.task.diagnostics[:1]:
        line = "".join(document.lines[error.line : error.line + 1])
        text = cut(f"{error.message} at line {error.line}:\n{line}")
        told.append(f"\n{_SEPARATOR}diagnostics\n{document.marked(text)}\n")
    return "".join(reversed(told))


def _answered(prefill: str, answer: str) -> list[str]:
    if not answer:
        raise RefusedEditError(Refusal.EMPTY_ANSWER)
    if answer.startswith("<|"):
        raise RefusedEditError(Refusal.SPECIAL_TOKEN)
    text = (prefill + answer).removesuffix(_SEPARATOR).rstrip("\n").removesuffix(_NO_LINE_END)
    return lines_of(text.replace(_CURSOR, ""))


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
