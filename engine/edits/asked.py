"""Asked edits: chat messages for an instruction on lines of a document, and the answer's reader.

The lines are shown without the white space that all of them begin with, and get it back.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import PurePosixPath
from typing import Self

from engine.common_start import common_ends, common_start
from engine.edits.block import lines_of, num_blank
from engine.edits.edit_prompt import (
    EditedDocument,
    EditPrompt,
    Refusal,
    RefusedEditError,
)
from engine.errors import InputError
from engine.request import ChatMessage, EditOutcome, EditTask
from engine.text.lines import leading_space

MOST_ASKED_LINES = 400  # of code that one instruction may change: about 4,000 tokens
FIX = "Fix this problem"  # begins an instruction that never deletes all of its lines
_SYSTEM = (
    "You edit code. Answer with the changed lines in one code block: all of them, complete, "
    "and nothing else."
)
_FENCE = re.compile("^[ \t]*(`{3,})", re.MULTILINE)
_MARKDOWN = (".md", ".markdown", ".mdx")  # an answer for such a file often has fences of its own
Render = Callable[[tuple[ChatMessage, ...], str], str]  # of messages and the answer's beginning


def check_lines(task: EditTask, num_lines: int) -> None:
    """Raise InputError if the lines of an instruction are not there, or too many."""
    if not task.first < task.end <= num_lines:
        raise InputError(f"lines {task.first} to {task.end} are no range of {num_lines} lines")
    if (num_asked := task.end - task.first) > MOST_ASKED_LINES:
        raise InputError(
            f"{num_asked} lines are too many to change at once: ask for {MOST_ASKED_LINES} at most"
        )


def asked_prompt(document: EditedDocument, render: Render) -> EditPrompt:
    """Ask for what the task's instruction says of its lines."""
    task = document.task
    block = _Block.of(document.lines[task.first : task.end])
    suffix = PurePosixPath(document.path).suffix
    quoted = (*block.lines, *task.instruction.split("\n"))
    fence = _fence(quoted, 4 if suffix in _MARKDOWN else 3)
    prefill = f"{fence}{suffix[1:]}\n"
    shown = prefill + "\n".join((*block.lines, fence))
    content = f"Change this code from {document.path}:\n\n{shown}\n\n{task.instruction}"

    def read(answer: str, is_cut: bool) -> EditOutcome:  # noqa: FBT001 - as an EditPrompt reads
        if is_cut:
            raise RefusedEditError(Refusal.TOKEN_LIMIT)
        lines = _fenced(answer, fence)
        if not lines and task.instruction.startswith(FIX):
            raise RefusedEditError(Refusal.EMPTY_ANSWER)
        return EditOutcome(task.first, task.end, block.changed(lines))

    return EditPrompt(
        text=render((ChatMessage("system", _SYSTEM), ChatMessage("user", content)), prefill),
        block=shown,
        prefill=prefill,
        stops=(),  # a fence in the answer may be one of its code
        read=read,
    )


@dataclass(frozen=True, slots=True)
class _Block:
    """Lines and how they are shown: without the white space that all begin with, `space`."""

    space: str
    old: Sequence[str]
    lines: tuple[str, ...]

    @classmethod
    def of(cls, old: Sequence[str]) -> Self:
        spaces = [leading_space(line) for line in old if line.strip()] or [""]
        space = spaces[0][: min(common_start(spaces[0], one) for one in spaces)]
        lines = (line.removeprefix(space) if line.strip() else "" for line in old)
        return cls(space, old, tuple(lines))

    def changed(self, answer: Sequence[str]) -> tuple[str, ...]:
        """Return the answer's lines, indented as the block. Raises RefusedEditError."""
        head, _, tail = _split_blank(self.old)
        shown = self.lines[len(head) : len(self.lines) - len(tail)]
        _, lines, _ = _split_blank(answer)
        if self.space and all(line.startswith(self.space) for line in filter(str.strip, lines)):
            lines = [line.removeprefix(self.space) for line in lines]
        is_same = [line.rstrip() for line in lines] == [line.rstrip() for line in shown]
        if is_same and sum(map(len, lines)) >= sum(map(len, shown)):  # no blanks are removed
            raise RefusedEditError(Refusal.NO_CHANGE)
        new = [self.space + line if line.strip() else line for line in lines]
        if any(line.isspace() for line in self.old):
            for old, at, size in _equal(shown, lines):  # blank lines keep their white space
                new[at : at + size] = self.old[len(head) + old : len(head) + old + size]
        return (*head, *new, *tail)


def _equal(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[int, int, int]]:
    """Yield where equal lines start in both, and their number.

    Among 200 new lines or more, frequent ones are found only next to others: all pairs of 1,000
    blank lines take seconds.
    """
    start, tail = common_ends(list(old), list(new))
    old_end, new_end = len(old) - tail, len(new) - tail
    yield 0, 0, start
    matcher = SequenceMatcher(None, old[start:old_end], new[start:new_end])
    for at, new_at, size in matcher.get_matching_blocks():
        yield start + at, start + new_at, size
    yield old_end, new_end, tail


def _split_blank(lines: Sequence[str]) -> tuple[Sequence[str], Sequence[str], Sequence[str]]:
    """Split into the blank lines at the start, the lines between and the blank ones at the end."""
    first, end = num_blank(lines), len(lines) - num_blank(lines[::-1])
    if first == len(lines):
        return (), lines, ()
    return lines[:first], lines[first:end], lines[end:]


def _fence(lines: Iterable[str], least: int) -> str:
    """A fence longer than any in the lines, of so many characters at least."""
    longest = max((len(one) for line in lines for one in _FENCE.findall(line)), default=0)
    return "`" * max(longest + 1, least)


def _fenced(answer: str, fence: str) -> list[str]:
    """The lines before the closing fence, with which the answer ends. Raises RefusedEditError.

    Any other fence hides where the code ends, so nothing is changed.
    """
    *lines, last = lines_of(answer.rstrip())
    if last == fence and not any(line.startswith(fence) for line in lines):
        return lines if any(map(str.strip, lines)) else []
    first = answer.lstrip().partition("\n")[0].rstrip()
    raise RefusedEditError(Refusal.EMPTY_ANSWER if first in ("", fence) else Refusal.MALFORMED)
