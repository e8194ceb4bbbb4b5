"""A document's changes in the order in which they were made, as a person sees them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Self

from engine.common_start import common_ends
from lsp_server.documents.line_buffer import differences

# Seconds after which a change of the same lines is another edit. Zed takes 1 s, which ends an edit
# at a moment's thought.
_PAUSE_S = 5.0
_LARGEST = 4_000  # characters of one hunk, more than a suggestion has; others are no edits by hand


@dataclass(frozen=True, slots=True)
class Hunk:
    """Lines `old` from `row` on became `new`; rows are those of the text at that change."""

    row: int
    old: tuple[str, ...]
    new: tuple[str, ...]
    time_s: float = 0.0  # of its last change, by a monotonic clock

    @property
    def old_end(self) -> int:
        """The row after its lines, before the change."""
        return self.row + len(self.old)

    @property
    def end(self) -> int:
        """The row after its lines, after the change."""
        return self.row + len(self.new)

    @property
    def num_added(self) -> int:
        """How far the change moves the lines below."""
        return len(self.new) - len(self.old)

    @property
    def num_chars(self) -> int:
        """Characters of all its lines, each with a line end."""
        return sum(len(line) + 1 for line in (*self.old, *self.new))

    def touches(self, later: Self) -> bool:
        """Whether the change after this one is at its lines, or next to them."""
        return later.row <= self.end and self.row <= later.old_end

    def shares(self, later: Self) -> bool:
        """Whether the change after this one is at its lines; not if only next to them."""
        if not self.new and not later.old:
            return self.row == later.row
        return later.row < self.end and self.row < later.old_end

    def then(self, later: Self) -> Self:
        """Return this change and the touching one after it, as one."""
        above, below = max(0, self.row - later.row), max(0, later.old_end - self.end)
        old = (*later.old[:above], *self.old, *later.old[len(later.old) - below :])
        above, below = max(0, later.row - self.row), max(0, self.end - later.old_end)
        new = (*self.new[:above], *later.new, *self.new[len(self.new) - below :])
        start, tail = common_ends(old, new)
        return replace(
            later,
            row=min(self.row, later.row) + start,
            old=old[start : len(old) - tail],
            new=new[start : len(new) - tail],
        )

    def swapped(self, later: Self) -> tuple[Self, Self]:
        """Return the same two changes in the other order; they must share no lines."""
        if later.row >= self.end:
            return replace(later, row=later.row - self.num_added), self
        return later, replace(self, row=self.row + later.num_added)


def hunks_between(old: Sequence[str], new: Sequence[str], time_s: float = 0.0) -> Iterator[Hunk]:
    """Yield hunks that turn `old` into `new`, from the top down."""
    num_added = 0
    for splice in reversed(differences(old, new)):
        lines = tuple(old[splice.start : splice.end])
        yield Hunk(splice.start + num_added, lines, splice.lines, time_s)
        num_added += len(splice.lines) - len(lines)


class EditScript:
    """Hunks that lead, one after the other, from a former text to `lines`, the present ones."""

    def __init__(self, lines: tuple[str, ...]) -> None:
        self.lines = lines
        self.hunks: list[Hunk] = []

    def follow(self, lines: tuple[str, ...], time_s: float) -> None:
        """Add the changes that lead to the present text, and drop those that they undo."""
        for hunk in hunks_between(self.lines, lines, time_s):
            if hunk.num_chars > _LARGEST:
                self.hunks.clear()  # they lead to its text, which is not told
            else:
                self._add(hunk)
        self.lines = lines
        del self.hunks[_num_lasting(self.hunks, lines) :]

    def _add(self, hunk: Hunk) -> None:
        """Add the newest change: as part of a recent one, or dropping those that it undoes."""
        if (left := self._without_undone(hunk)) is not None:
            self.hunks = left
            return
        for number, whole, later in self._backwards(hunk, Hunk.touches):
            has_paused = hunk.time_s - self.hunks[number].time_s > _PAUSE_S
            if has_paused or whole.num_chars > _LARGEST:
                break
            self.hunks[number:] = [whole, *later]
            self._move_down(number)
            return
        self.hunks.append(hunk)

    def is_undone_by(self, hunk: Hunk) -> bool:
        """Whether the change, or a part of it, would bring lines back as they were before."""
        lines = (*self.lines[: hunk.row], *hunk.new, *self.lines[hunk.old_end :])
        return _num_lasting([*self.hunks, hunk], lines) <= len(self.hunks) or any(
            self._without_undone(one) is not None for one in (hunk, *_parts(hunk))
        )

    def region_of(self, number: int) -> tuple[int, int]:
        """Return the rows of a hunk, and of what touched it later, in the present text."""
        first, end = self.hunks[number].row, self.hunks[number].end
        for later in self.hunks[number + 1 :]:
            if later.old_end < first:
                first, end = first + later.num_added, end + later.num_added
            elif later.row <= end:
                first, end = min(first, later.row), max(end, later.old_end) + later.num_added
        return first, end

    def _without_undone(self, hunk: Hunk) -> list[Hunk] | None:
        for number, whole, later in self._backwards(hunk, Hunk.shares):
            if whole.old == whole.new:
                return [*self.hunks[:number], *later]
        return None

    def _backwards(
        self, hunk: Hunk, meets: Callable[[Hunk, Hunk], bool]
    ) -> Iterator[tuple[int, Hunk, list[Hunk]]]:
        """Yield the numbers of hunks that the newest change meets, newest first.

        With each come all these changes as one, in its place, and the hunks after that.
        """
        later: list[Hunk] = []  # newest first
        for number in reversed(range(len(self.hunks))):
            former = self.hunks[number]
            if meets(former, hunk):
                hunk = former.then(hunk)
                yield number, hunk, later[::-1]
            else:
                hunk, moved = former.swapped(hunk)
                later.append(moved)

    def _move_down(self, number: int) -> None:
        """Move a hunk, now the newest one, behind those that it does not touch."""
        for place in range(number, len(self.hunks) - 1):
            hunk, later = self.hunks[place : place + 2]
            if hunk.touches(later):
                break
            self.hunks[place : place + 2] = hunk.swapped(later)


def _num_lasting(hunks: Sequence[Hunk], lines: Sequence[str]) -> int:
    """Count the hunks that first led to the present text, `lines`; later ones led back to it."""
    num_lasting = len(hunks)
    top = min((hunk.row for hunk in hunks), default=0)  # lines above were always the same
    present, former = list(lines[top:]), list(lines[top:])
    for number in reversed(range(len(hunks))):
        hunk = hunks[number]
        former[hunk.row - top : hunk.end - top] = hunk.old
        if former == present:
            num_lasting = number
    return num_lasting


def _parts(hunk: Hunk) -> Iterator[Hunk]:
    """Yield the changes of single lines, or of lines between equal ones, each as if alone."""
    if len(hunk.old) == len(hunk.new):
        for number, (old, new) in enumerate(zip(hunk.old, hunk.new, strict=True)):
            if old != new:
                yield Hunk(hunk.row + number, (old,), (new,))
        return
    num_added = 0
    for part in hunks_between(hunk.old, hunk.new):
        yield replace(part, row=hunk.row + part.row - num_added)
        num_added += part.num_added
