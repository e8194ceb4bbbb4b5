"""Finds secrets in a text, also while that is being edited."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from engine.common_start import common_ends
from lsp_server.privacy.secret_kinds import kinds_in
from lsp_server.reasons import Reason

AT_ONCE = 2**15  # characters, searched without a pause: some milliseconds
LONGEST_LINE = 500_000  # characters; a longer one is not searched, and not sent
UNJUDGED = "nothing that could be judged"
UNREAD = "nothing that was read yet"


class SecretText(NamedTuple):
    """The row of a secret, and its kind."""

    row: int
    what: str

    @property
    def reason(self) -> Reason:
        """Why the text is not used."""
        return {UNJUDGED: Reason.LINE_TOO_LONG, UNREAD: Reason.UNREAD}.get(
            self.what, Reason.SECRET_FILE
        )

    @property
    def sentence(self) -> str:
        """A sentence for people: the line, and the kind of secret."""
        return f"line {self.row + 1} looks like {self.what}"


def secrets_in(text: str) -> Iterator[SecretText]:
    """Yield the secrets in `text`."""
    for kind in kinds_in(text):
        row = end = 0
        for found in filter(kind.holds, kind.pattern.finditer(text)):
            row += text.count("\n", end, found.start())  # counted from the one before
            end = found.start()
            yield SecretText(row, kind.what)


def _judged(lines: Sequence[str]) -> Iterator[SecretText]:
    """Yield the secrets, of two lines at most, part by part so that other threads get a turn."""
    start = 0
    while start < len(lines):
        end, size = start, 0
        while end < len(lines) and size < AT_ONCE:
            if len(lines[end]) > LONGEST_LINE:
                yield SecretText(end, UNJUDGED)
            else:
                size += len(lines[end]) + 1
            end += 1
        part = ("" if len(line) > LONGEST_LINE else line for line in lines[start : end + 1])
        found = secrets_in("\n".join(part))
        yield from (SecretText(start + row, what) for row, what in found if start + row < end)
        start = end


@dataclass(slots=True)
class SecretLines:
    """The secrets of a text that is being edited: only changed lines are searched."""

    _lines: Sequence[str] = ()
    _found: dict[int, str] = field(default_factory=dict)  # by row

    def follow(self, lines: Sequence[str]) -> SecretText | None:
        """Take the text's new lines, and return its first secret."""
        if lines is not self._lines:
            former, (start, end) = self._lines, self._changed(lines)
            added = len(lines) - len(former)
            new = (one for one in _judged(lines[start : end + 1]) if start + one.row < end)
            self._found = {
                **{row: what for row, what in self._found.items() if row < start},
                **{row + added: what for row, what in self._found.items() if row + added >= end},
                **{row + start: what for row, what in sorted(new, reverse=True)},
            }
            self._lines = lines
        row = min(self._found, default=None)
        return None if row is None else SecretText(row, self._found[row])

    def num_new(self, lines: Sequence[str]) -> int:
        """Return how many characters `follow` would search."""
        start, end = (0, 0) if lines is self._lines else self._changed(lines)
        return sum(map(len, lines[start:end]))

    def _changed(self, lines: Sequence[str]) -> tuple[int, int]:
        """Return the rows to search again; a secret's name may stand on the row above its value."""
        start, tail = common_ends(self._lines, lines)
        return max(0, start - 1), len(lines) - tail
