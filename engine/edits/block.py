"""The lines of a document that a model may change, and the change that its answer makes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Self

from engine.common_start import common_ends
from engine.edits.edit_prompt import (
    EditedDocument,
    EditPrompt,
    Refusal,
    RefusedEditError,
)
from engine.edits.past import earlier_texts
from engine.request import EditOutcome

# Limits of Sweep's server. A longer line than `MOST_LINE` characters is cut in a prompt.
_MOST_CHARS, MOST_LINES, _MOST_MEAN, MOST_LINE = 10_000_000, 50_000, 240, 600


@dataclass(frozen=True, slots=True)
class Block:
    """Lines of a document from its line `first` on, with the cursor in them."""

    document: EditedDocument
    lines: tuple[str, ...]
    first: int
    row: int  # of the cursor, from the first line of the block
    column: int
    ends_file: bool  # its last line is the empty one behind the file's last line end

    @classmethod
    def of(cls, document: EditedDocument, first: int, end: int, taken: Sequence[str]) -> Self:
        """Lines `first` up to, not including, `end`.

        They must not contain what is `taken` or names a special token: an answer with it would
        seem to end there. Raises RefusedEditError.
        """
        _check_size(document.lines)
        lines = tuple(document.lines[first:end])
        if not any(line.strip() for line in lines):
            raise RefusedEditError(Refusal.EMPTY_BLOCK)
        if any(len(line) > MOST_LINE for line in lines):
            raise RefusedEditError(Refusal.LONG_LINES)
        text = "\n".join(lines)
        if any(one in text for one in taken) or document.marked(text) != text:
            raise RefusedEditError(Refusal.SPECIAL_TOKEN)
        row = min(max(document.row - first, 0), len(lines) - 1)
        ends_file = end >= len(document.lines) and not lines[-1]
        return cls(document, lines, first, row, min(document.column, len(lines[row])), ends_file)

    @property
    def text(self) -> str:
        """The lines, joined."""
        return "\n".join(self.lines)

    @property
    def before(self) -> str:
        """The text before the cursor."""
        return "\n".join((*self.lines[: self.row], self.lines[self.row][: self.column]))

    @property
    def earlier(self) -> list[str]:
        """The text, ended by LF, before the user's last edits: with one more undone in each."""
        return list(earlier_texts(self.document, f"{self.text}\n"))

    def shown(self, cursor: str) -> str:
        """The text with a mark at the cursor."""
        return self.before + cursor + self.text[len(self.before) :]

    def prompt(
        self,
        text: str,
        stops: tuple[str, ...],
        answered: Callable[[str], Sequence[str]],  # the block's lines in an answer
        *,
        prefill: str = "",
        copied: str = "",  # what the answer repeats, if not the block's text
        check: Callable[[tuple[str, ...]], None] = lambda _: None,  # of the new lines
    ) -> EditPrompt:
        """Ask for the block's lines after the next edit."""

        def read(answer: str, is_cut: bool) -> EditOutcome:  # noqa: FBT001 - as EditPrompt.read is called
            if is_cut:
                raise RefusedEditError(Refusal.TOKEN_LIMIT)
            new = self.with_blank_ends(answered(answer))
            edit = self.changed_to(new)
            check(new)
            return edit

        return EditPrompt(text, copied or self.text, prefill, stops, read)

    def with_blank_ends(self, lines: Sequence[str]) -> tuple[str, ...]:
        """An answer's lines between the block's own blank ones. Raises RefusedEditError.

        Models leave these out, or write some more. Lines added at the end fill blank ones.
        """
        head, tail = num_blank(self.lines), num_blank(self.lines[::-1])
        new = lines[num_blank(lines) :]
        new = new[: len(new) - num_blank(new[::-1])]
        if not new:
            raise RefusedEditError(Refusal.EMPTY_ANSWER)
        if new[-1] != self.lines[-1 - tail]:
            num_added = len(new) - (len(self.lines) - head - tail)
            tail -= min(tail - self.ends_file, max(0, num_added))
        return (*self.lines[:head], *new, *self.lines[len(self.lines) - tail :])

    def changed_to(self, new: tuple[str, ...]) -> EditOutcome:
        """The change from the block's lines to these. Raises RefusedEditError."""
        filled = _filled(new)
        start, tail = common_ends(self.lines, new)
        old, new = self.lines[start : len(self.lines) - tail], new[start : len(new) - tail]
        if not old and not new:
            raise RefusedEditError(Refusal.NO_CHANGE)
        if not any(line.strip() for line in (*old, *new)):
            raise RefusedEditError(Refusal.BLANK_LINES)
        if any(_filled(one.split("\n")) == filled for one in self.earlier):
            raise RefusedEditError(Refusal.REVERT)
        return EditOutcome(self.first + start, self.first + start + len(old), new)


def _filled(lines: Sequence[str]) -> list[str]:
    return [line for line in lines if line]


def _check_size(lines: Sequence[str]) -> None:
    """Raise RefusedEditError for a file that is too large, or has lines that nobody wrote."""
    num_chars = sum(map(len, lines))
    if len(lines) > MOST_LINES or num_chars > min(_MOST_CHARS, _MOST_MEAN * len(lines)):
        raise RefusedEditError(Refusal.LARGE_FILE)


def lines_of(text: str) -> list[str]:
    """Return an answer's lines; a line end at the end begins none."""
    return text.replace("\r\n", "\n").replace("\r", "\n").removesuffix("\n").split("\n")


def num_blank(lines: Sequence[str]) -> int:
    """Count the blank lines at the start."""
    return sum(1 for _ in takewhile(lambda line: not line.strip(), lines))
