"""Answers from memory while the user types along an earlier completion."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple, Self

from engine.text.brackets import CLOSERS, balance
from lsp_server.documents.anchor import Anchor

_MOST_ITEMS = 250  # completions; Copilot keeps 100, and an explicit request adds several
_MOST_CHARS = 1_000_000  # characters of all texts: 4,000 each, far longer than most completions
_LIFETIME_S = 300.0  # seconds, long enough to look elsewhere and come back to a place

HashOf = Callable[[int, int], int]


class Suggestion(NamedTuple):
    """Text to insert at a cursor, in place of characters after it."""

    text: str
    replaced_chars_after_cursor: int = 0
    completion_id: str = ""
    begun: int = 0  # characters of the completion that stand before the cursor already

    @property
    def end(self) -> int:
        """Where the text ends in its completion."""
        return self.begun + len(self.text)


def line_hashes(lines: tuple[str, ...]) -> HashOf:
    """Return a cached hash function of lines, quick for known lines, as a str keeps its hash."""
    return cache(lambda start, end: hash(lines[start:end]))


@dataclass(frozen=True, slots=True)
class PlacedSuggestion:
    """A suggestion with its place; an empty one marks the start of a completion."""

    suggestion: Suggestion
    uri: str
    line: int
    above: int  # hash of the lines above the cursor's own
    below: int
    before: str  # the cursor's line up to it
    rest: str
    cells: int  # hash of a notebook's other cells
    is_invoked: bool  # whether an explicit request made it, which shows even unlikely text

    @classmethod
    def at(cls, anchor: Anchor) -> Self:
        """Return the start of a completion for `anchor`."""
        snapshot, position = anchor.snapshot, anchor.position
        return cls(
            Suggestion(""),
            snapshot.uri,
            position.line,
            hash(snapshot.lines[: position.line]),
            hash(snapshot.lines[position.line + 1 :]),
            snapshot.prefix_of_line(position),
            snapshot.rest_of_line(position),
            hash(anchor.cells),
            anchor.is_invoked,
        )

    def rest_at(self, anchor: Anchor, hash_of: HashOf) -> Suggestion | None:
        """Return the text left to type at `anchor`, if the text around it still matches."""
        text, completion_id = self.suggestion.text, self.suggestion.completion_id
        if anchor.position.line - self.line > text.count("\n"):
            return None
        typed = self._typed(anchor)
        if typed is None or typed == text or not text.startswith(typed):
            return None
        if self.is_invoked and not (typed or anchor.is_invoked):
            return None
        rest: str | None = text[len(typed) :]
        replaced = self._replaced(typed, anchor, hash_of)
        if replaced is None:
            closing = self._closing_line(typed, anchor, hash_of)
            rest, replaced = closing and _before(text[len(typed) :], closing), 0
        if rest is None or hash_of(0, self.line) != self.above:
            return None
        return Suggestion(rest, replaced, completion_id, len(typed))

    def typed_until(self, later: Anchor) -> str | None:
        """Return the text typed here before `later`; None after any other change."""
        typed, hash_of = self._typed(later), line_hashes(later.snapshot.lines)
        if typed is None or hash_of(0, self.line) != self.above:
            return None
        is_below = self._replaced(typed, later, hash_of) is not None
        return typed if is_below or self._closing_line(typed, later, hash_of) else None

    def _typed(self, later: Anchor) -> str | None:
        """Return the text between this place and `later`, if the line before it is unchanged."""
        lines, position = later.snapshot.lines, later.position
        is_near = self.uri == later.snapshot.uri and self.line <= position.line
        if not is_near or self.cells != hash(later.cells):
            return None
        last = lines[position.line][: position.character]
        written = "\n".join((*lines[self.line : position.line], last))
        return written[len(self.before) :] if written.startswith(self.before) else None

    def _replaced(self, typed: str, anchor: Anchor, hash_of: HashOf) -> int | None:
        """Count the characters to replace; None if more than the editor's closers has changed."""
        snapshot, position = anchor.snapshot, anchor.position
        if hash_of(position.line + 1, len(snapshot.lines)) != self.below:
            return None
        after = snapshot.rest_of_line(position)
        text, replaced = self.suggestion.text, self.suggestion.replaced_chars_after_cursor
        num_closers = len(self.rest) - len(self.rest.lstrip(CLOSERS))
        for overtyped in range(max(replaced, num_closers) + 1):
            if after == self.rest[overtyped:] and _contains(typed, self.rest[:overtyped]):
                return max(0, replaced - overtyped)
        added = balance(typed).closers
        if after != added + self.rest:
            return None
        return replaced + len(added) if _contains(text[len(typed) :], added) else 0

    def _closing_line(self, typed: str, anchor: Anchor, hash_of: HashOf) -> str | None:
        """Return the closers that the editor has moved to a line below, at Enter between brackets."""
        lines, position = anchor.snapshot.lines, anchor.position
        below, replaced = position.line + 1, self.suggestion.replaced_chars_after_cursor
        if lines[position.line][position.character :] or below >= len(lines):
            return None
        closing = (balance(typed).closers + self.rest[replaced:]).strip()
        is_same = lines[below].strip() == closing and hash_of(below + 1, len(lines)) == self.below
        return closing if is_same and closing else None


class SuggestionCache:
    """The last completions, each found again wherever the cursor is within its text."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[PlacedSuggestion, float]] = {}  # with its expiry; newest last

    def __len__(self) -> int:
        return len(self._kept)

    def remember(self, written: PlacedSuggestion) -> None:
        """Keep a completion as the newest."""
        completion_id = written.suggestion.completion_id
        self._kept.pop(completion_id, None)
        self._kept[completion_id] = written, time.monotonic() + _LIFETIME_S
        while len(self) > _MOST_ITEMS or self._num_chars > _MOST_CHARS:
            del self._kept[next(iter(self._kept))]

    def suggestions(self, anchor: Anchor) -> list[Suggestion]:
        """Return the rests of completions that the text before the cursor begins, newest first."""
        now, hash_of = time.monotonic(), line_hashes(anchor.snapshot.lines)
        self._kept = {key: one for key, one in self._kept.items() if one[1] > now}
        found: dict[str, Suggestion] = {}
        for written, _ in reversed(self._kept.values()):
            if (rest := written.rest_at(anchor, hash_of)) is not None:
                found.setdefault(rest.text, rest)
        return list(found.values())

    def text_of(self, completion_id: str) -> str:
        """Return all known text of a completion, "" if it is forgotten."""
        kept = self._kept.get(completion_id)
        return kept[0].suggestion.text if kept else ""

    def prefer(self, completion_id: str) -> None:
        """Put a completion before all others, as if it were the newest."""
        if (kept := self._kept.pop(completion_id, None)) is not None:
            self._kept[completion_id] = kept

    def clear(self) -> None:
        """Drop everything, as it was made with other settings."""
        self._kept.clear()

    def forget(self, uri: str) -> None:
        """Drop the suggestions of a closed document."""
        self._kept = {key: one for key, one in self._kept.items() if one[0].uri != uri}

    @property
    def _num_chars(self) -> int:
        return sum(len(written.suggestion.text) for written, _ in self._kept.values())


def _before(text: str, closing: str) -> str | None:
    """Return the text before its line `closing`; None if there is no such line, or nothing before."""
    first, *others = text.split("\n")
    number = next((at for at, line in enumerate(others) if line.strip() == closing), None)
    inner = "\n".join((first, *others[:number]))
    return inner if number is not None and inner.strip() else None


def _contains(text: str, closers: str) -> bool:
    """Whether the text contains the closers in their order."""
    characters = iter(text)
    return all(closer in characters for closer in closers)
