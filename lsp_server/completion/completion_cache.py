"""Completions that the user types through: the rest of each is answered at once, from memory."""

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from engine.host.protocol import Position
from engine.text.brackets import balance
from lsp_server.completion.anchor import Anchor, typed_since


class CachedCompletion(NamedTuple):
    """What is still to be typed of a completion."""

    completion_id: str
    text: str
    replaced_chars_after_cursor: int


class _Text(NamedTuple):
    """A document's lines, and the hash of lines `start` to `end` (excluded).

    A str keeps its hash, so hashing lines that have been seen before costs nanoseconds a line.
    """

    lines: tuple[str, ...]
    hash_of: Callable[[int, int], int]


@dataclass(frozen=True, slots=True)
class _Entry:
    """A completion where it was made.

    Above and below are hashes of lines, the cursor's own excluded; `cells` is that of a notebook's
    other cells.
    """

    completion_id: str
    uri: str
    line: int
    above: int
    below: int
    before: str  # on the cursor's line
    rest: str
    text: str
    replaced: int
    cells: int
    is_invoked: bool  # whoever asked for it was shown what there is, however unlikely

    def remainder(
        self, now: _Text, position: Position, *, is_invoked: bool
    ) -> CachedCompletion | None:
        """What is left to type at `position`, if the text there is what this was made for.

        What was asked for comes by itself only to who types along it.
        """
        typed = self._typed(now.lines, position)
        if typed is None or len(typed) >= len(self.text):
            return None
        if self.is_invoked and not (typed or is_invoked):
            return None
        rest: str | None = self.text[len(typed) :]
        replaced = self._replaced(typed, now, position)
        if replaced is None:
            rest, replaced = self._before_closing_line(typed, now, position), 0
        if rest is None or now.hash_of(0, self.line) != self.above:
            return None
        return CachedCompletion(self.completion_id, rest, replaced)

    def _typed(self, lines: tuple[str, ...], position: Position) -> str | None:
        """What has been typed since, if it is the text's beginning; its lines are few."""
        if position.line - self.line > self.text.count("\n"):
            return None
        typed = typed_since(lines, self.line, self.before, position)
        return typed if typed is not None and self.text.startswith(typed) else None

    def _replaced(self, typed: str, now: _Text, position: Position) -> int | None:
        """Characters behind the cursor that the rest replaces; None if what follows has changed.

        An editor that closes what was just opened changes it by that alone, and one that lets the
        user type over a closing bracket takes that away.
        """
        if now.hash_of(position.line + 1, len(now.lines)) != self.below:
            return None
        after = now.lines[position.line][position.character :]
        for overtyped in range(self.replaced + 1):
            if after == self.rest[overtyped:] and _contains(typed, self.rest[:overtyped]):
                return self.replaced - overtyped
        added = balance(typed).closers
        if after != added + self.rest:
            return None
        return self.replaced + len(added) if _contains(self.text[len(typed) :], added) else 0

    def _before_closing_line(self, typed: str, now: _Text, position: Position) -> str | None:
        """The rest without its last line, where Enter between brackets has written that line."""
        lines, below = now.lines, position.line + 1
        inner, _, last = self.text[len(typed) :].rpartition("\n")
        if not inner.strip() or lines[position.line][position.character :] or below >= len(lines):
            return None
        closing = balance(typed).closers + self.rest[self.replaced :]
        is_same = lines[below].strip() == last.strip() == closing.strip() != ""
        return inner if is_same and now.hash_of(below + 1, len(lines)) == self.below else None


class CompletionCache:
    """The last completions, each found again wherever the cursor stands within its text.

    A completion holds as long as the text around it is what it was made for.
    """

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
        self._expiry: OrderedDict[_Entry, float] = OrderedDict()  # the newest last

    def __len__(self) -> int:
        return len(self._expiry)

    def remember(
        self,
        anchor: Anchor,
        completion_id: str,
        text: str,
        replaced_chars_after_cursor: int = 0,
    ) -> None:
        """Keep a completion made for `anchor`, in place of what was kept of it before."""
        self.drop(completion_id)
        snapshot, position = anchor.snapshot, anchor.position
        entry = _Entry(
            completion_id,
            snapshot.uri,
            position.line,
            hash(snapshot.lines[: position.line]),
            hash(snapshot.lines[position.line + 1 :]),
            snapshot.prefix_of_line(position),
            snapshot.rest_of_line(position),
            text,
            replaced_chars_after_cursor,
            hash(anchor.cells),
            anchor.is_invoked,
        )
        self._expiry[entry] = self._clock() + self._lifetime_s
        while len(self) > self._max_items or self._num_chars > self._max_chars:
            self._expiry.popitem(last=False)

    def remainders(self, anchor: Anchor) -> list[CachedCompletion]:
        """What is left of completions that the text before the cursor leads into, newest first."""
        self._expire()
        position, lines, cells = anchor.position, anchor.snapshot.lines, hash(anchor.cells)
        now = _Text(lines, cache(lambda start, end: hash(lines[start:end])))
        found: dict[str, CachedCompletion] = {}
        for entry in reversed(self._expiry):
            is_here = entry.uri == anchor.snapshot.uri and entry.cells == cells
            if is_here and entry.line <= position.line:
                rest = entry.remainder(now, position, is_invoked=anchor.is_invoked)
                if rest is not None:
                    found.setdefault(rest.text, rest)
        return list(found.values())

    def prefer(self, completion_id: str) -> None:
        """Have a completion come before all others, as if it were the newest."""
        for entry in [one for one in self._expiry if one.completion_id == completion_id]:
            self._expiry.move_to_end(entry)

    def drop(self, completion_id: str) -> None:
        """Keep a completion no longer."""
        for entry in [one for one in self._expiry if one.completion_id == completion_id]:
            del self._expiry[entry]

    def clear(self) -> None:
        """Drop everything: it was made as other settings wanted it."""
        self._expiry.clear()

    def forget(self, uri: str) -> None:
        """Drop what belongs to a document that was closed."""
        for entry in [one for one in self._expiry if one.uri == uri]:
            del self._expiry[entry]

    @property
    def _num_chars(self) -> int:
        return sum(len(entry.text) for entry in self._expiry)

    def _expire(self) -> None:
        now = self._clock()
        while self._expiry and next(iter(self._expiry.values())) <= now:
            self._expiry.popitem(last=False)


def _contains(text: str, closers: str) -> bool:
    """The text writes the closers itself, in their order."""
    characters = iter(text)
    return all(closer in characters for closer in closers)
