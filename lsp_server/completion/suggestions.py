"""Completions that the user types through: the rest of each is answered at once, from memory."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple, Self

from engine.host.protocol import Position
from engine.text.brackets import balance
from lsp_server.documents.anchor import Anchor, typed_since


class Suggestion(NamedTuple):
    """What is to be typed at a cursor: text in place of characters behind it."""

    completion_id: str
    text: str
    replaced_chars_after_cursor: int = 0


class Here(NamedTuple):
    """A cursor, and the hash of its document's lines `start` to `end` (excluded).

    A str keeps its hash, so hashing lines that have been seen before costs nanoseconds a line.
    """

    anchor: Anchor
    hash_of: Callable[[int, int], int]

    @classmethod
    def at(cls, anchor: Anchor) -> Self:
        """The same lines are hashed once."""
        lines = anchor.snapshot.lines
        return cls(anchor, cache(lambda start, end: hash(lines[start:end])))


@dataclass(frozen=True, slots=True)
class PlacedSuggestion:
    """A suggestion where it was made.

    Above and below are hashes of lines, the cursor's own excluded; `cells` is that of a notebook's
    other cells.
    """

    suggestion: Suggestion
    uri: str
    line: int
    above: int
    below: int
    before: str  # on the cursor's line
    rest: str
    cells: int
    is_invoked: bool  # an explicit request shows what there is, however unlikely

    @classmethod
    def at(cls, anchor: Anchor, suggestion: Suggestion) -> Self:
        """Made for `anchor`."""
        snapshot, position = anchor.snapshot, anchor.position
        return cls(
            suggestion,
            snapshot.uri,
            position.line,
            hash(snapshot.lines[: position.line]),
            hash(snapshot.lines[position.line + 1 :]),
            snapshot.prefix_of_line(position),
            snapshot.rest_of_line(position),
            hash(anchor.cells),
            anchor.is_invoked,
        )

    def rest_at(self, here: Here) -> Suggestion | None:
        """What is left to type there, if the text around is what this was made for.

        What an explicit request brought comes by itself only to a user that types along it.
        """
        anchor, position = here.anchor, here.anchor.position
        is_near = self.uri == anchor.snapshot.uri and self.line <= position.line
        if not is_near or self.cells != hash(anchor.cells):
            return None
        completion_id, text, _ = self.suggestion
        typed = self._typed(anchor.snapshot.lines, position)
        if typed is None or len(typed) >= len(text):
            return None
        if self.is_invoked and not (typed or anchor.is_invoked):
            return None
        rest: str | None = text[len(typed) :]
        replaced = self._replaced(typed, here)
        if replaced is None:
            rest, replaced = self._before_closing_line(typed, here), 0
        if rest is None or here.hash_of(0, self.line) != self.above:
            return None
        return Suggestion(completion_id, rest, replaced)

    def _typed(self, lines: tuple[str, ...], position: Position) -> str | None:
        """What has been typed since, if it is the text's beginning; its lines are few."""
        text = self.suggestion.text
        if position.line - self.line > text.count("\n"):
            return None
        typed = typed_since(lines, self.line, self.before, position)
        return typed if typed is not None and text.startswith(typed) else None

    def _replaced(self, typed: str, here: Here) -> int | None:
        """Characters behind the cursor that the rest replaces; None if what follows has changed.

        An editor that closes what was just opened changes it by that alone, and one that lets the
        user type over a closing bracket takes that away.
        """
        snapshot, position = here.anchor.snapshot, here.anchor.position
        if here.hash_of(position.line + 1, len(snapshot.lines)) != self.below:
            return None
        after = snapshot.rest_of_line(position)
        _, text, replaced = self.suggestion
        for overtyped in range(replaced + 1):
            if after == self.rest[overtyped:] and _contains(typed, self.rest[:overtyped]):
                return replaced - overtyped
        added = balance(typed).closers
        if after != added + self.rest:
            return None
        return replaced + len(added) if _contains(text[len(typed) :], added) else 0

    def _before_closing_line(self, typed: str, here: Here) -> str | None:
        """The rest without its last line, where Enter between brackets has written that line."""
        lines, position = here.anchor.snapshot.lines, here.anchor.position
        below, (_, text, replaced) = position.line + 1, self.suggestion
        inner, _, last = text[len(typed) :].rpartition("\n")
        if not inner.strip() or lines[position.line][position.character :] or below >= len(lines):
            return None
        closing = balance(typed).closers + self.rest[replaced:]
        is_same = lines[below].strip() == last.strip() == closing.strip() != ""
        return inner if is_same and here.hash_of(below + 1, len(lines)) == self.below else None


class SuggestionCache:
    """The last completions, each found again wherever the cursor stands within its text."""

    def __init__(
        self,
        *,
        max_items: int = 250,
        max_chars: int = 1_000_000,
        lifetime_s: float = 300.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._max_items = max_items
        self._max_chars = max_chars
        self._lifetime_s = lifetime_s
        self._clock = clock
        self._kept: dict[str, tuple[PlacedSuggestion, float]] = {}  # until when; the newest last

    def __len__(self) -> int:
        return len(self._kept)

    def remember(self, written: PlacedSuggestion) -> None:
        """Keep a completion as the newest."""
        completion_id = written.suggestion.completion_id
        self._kept.pop(completion_id, None)
        self._kept[completion_id] = written, self._clock() + self._lifetime_s
        while len(self) > self._max_items or self._num_chars > self._max_chars:
            del self._kept[next(iter(self._kept))]

    def suggestions(self, anchor: Anchor) -> list[Suggestion]:
        """What is left of completions that the text before the cursor leads into, newest first."""
        now, here = self._clock(), Here.at(anchor)
        self._kept = {key: one for key, one in self._kept.items() if one[1] > now}
        found: dict[str, Suggestion] = {}
        for written, _ in reversed(self._kept.values()):
            if (rest := written.rest_at(here)) is not None:
                found.setdefault(rest.text, rest)
        return list(found.values())

    def prefer(self, completion_id: str) -> None:
        """Have a completion come before all others, as if it were the newest."""
        if (kept := self._kept.pop(completion_id, None)) is not None:
            self._kept[completion_id] = kept

    def clear(self) -> None:
        """Drop everything: it was made as other settings wanted it."""
        self._kept.clear()

    def forget(self, uri: str) -> None:
        """Drop what belongs to a document that was closed."""
        self._kept = {key: one for key, one in self._kept.items() if one[0].uri != uri}

    @property
    def _num_chars(self) -> int:
        return sum(len(written.suggestion.text) for written, _ in self._kept.values())


def _contains(text: str, closers: str) -> bool:
    """The text writes the closers itself, in their order."""
    characters = iter(text)
    return all(closer in characters for closer in closers)
