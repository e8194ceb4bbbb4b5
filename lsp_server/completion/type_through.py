"""Completions that the user types along: the rest of each is answered at once, from memory."""

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from engine.host.protocol import Position
from lsp_server.completion.processed import Processed
from lsp_server.prompt.brackets import balance

MAX_ITEMS = 250
MAX_CHARS = 1_000_000
LIFETIME_S = 300.0


class SnapshotLike(Protocol):
    """A document at one version; lines that did not change should be the same objects as before."""

    @property
    def uri(self) -> str:
        """The document's name."""

    @property
    def lines(self) -> tuple[str, ...]:
        """Its text."""


class Remainder(NamedTuple):
    """What is still to be typed of a completion."""

    completion_id: str
    text: str
    replaced_chars_after_cursor: int
    typed_len: int  # code points of the completion's text that stand in the document

    @property
    def processed(self) -> Processed:
        """What to insert at the cursor."""
        return Processed(self.text, self.replaced_chars_after_cursor)


@dataclass(frozen=True, slots=True)
class _Known:
    """A completion where it was made.

    Above and below are hashes of lines, the cursor's own excluded.
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


class _Hashes:
    """Hashes of one snapshot's lines.

    A str keeps its hash, so hashing a tuple of lines that have been seen before costs
    nanoseconds a line: nothing needs to be kept from one version to the next.
    """

    def __init__(self, lines: tuple[str, ...]) -> None:
        self.lines = lines
        self._known: dict[tuple[int, int], int] = {}

    def of(self, start: int, end: int) -> int:
        """The hash of lines `start` to `end` (excluded)."""
        key = start, end
        if key not in self._known:
            self._known[key] = hash(self.lines[start:end])
        return self._known[key]


class TypeThrough:
    """The last completions, each found again wherever the cursor stands within its text.

    A completion holds as long as the text around it is what it was made for.
    """

    def __init__(
        self,
        *,
        max_items: int = MAX_ITEMS,
        max_chars: int = MAX_CHARS,
        lifetime_s: float = LIFETIME_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._max_items = max_items
        self._max_chars = max_chars
        self._lifetime_s = lifetime_s
        self._clock = clock
        self._expiry: OrderedDict[_Known, float] = OrderedDict()  # the newest last
        self._num_chars = 0
        self._hashes = _Hashes(())

    def __len__(self) -> int:
        return len(self._expiry)

    def remember(
        self,
        snapshot: SnapshotLike,
        position: Position,
        completion_id: str,
        text: str,
        replaced_chars_after_cursor: int = 0,
    ) -> None:
        """Keep a completion made for `position` of `snapshot`."""
        lines, row = snapshot.lines, position.line
        hashes = self._hashes_of(lines)
        known = _Known(
            completion_id,
            snapshot.uri,
            row,
            hashes.of(0, row),
            hashes.of(row + 1, len(lines)),
            lines[row][: position.character],
            lines[row][position.character :],
            text,
            replaced_chars_after_cursor,
        )
        if known in self._expiry:
            self._drop(known)
        self._expiry[known] = self._clock() + self._lifetime_s
        self._num_chars += len(text)
        while len(self._expiry) > self._max_items or self._num_chars > self._max_chars:
            self._drop(next(iter(self._expiry)))

    def remainders(self, snapshot: SnapshotLike, position: Position) -> list[Remainder]:
        """What is left of completions that the text before the cursor leads into, newest first."""
        self._expire()
        hashes = self._hashes_of(snapshot.lines)
        found: dict[str, Remainder] = {}
        for known in reversed(self._expiry):
            if known.uri == snapshot.uri and known.line <= position.line:
                rest = _remainder(known, hashes, position)
                if rest is not None:
                    found.setdefault(rest.text, rest)
        return list(found.values())

    def prefer(self, completion_id: str) -> None:
        """Have a completion come before all others, as if it were the newest."""
        for known in [one for one in self._expiry if one.completion_id == completion_id]:
            self._expiry.move_to_end(known)

    def forget(self, uri: str) -> None:
        """Drop what belongs to a document that was closed."""
        for known in [known for known in self._expiry if known.uri == uri]:
            self._drop(known)

    def _hashes_of(self, lines: tuple[str, ...]) -> _Hashes:
        if self._hashes.lines is not lines:
            self._hashes = _Hashes(lines)
        return self._hashes

    def _expire(self) -> None:
        now = self._clock()
        while self._expiry and self._expiry[oldest := next(iter(self._expiry))] <= now:
            self._drop(oldest)

    def _drop(self, known: _Known) -> None:
        del self._expiry[known]
        self._num_chars -= len(known.text)


def fits(typed_since_start: str, text_so_far: str, *, is_finished: bool) -> bool:
    """A generation has printed what was typed since it began, or may still print it."""
    if text_so_far.startswith(typed_since_start):
        return not is_finished or len(typed_since_start) < len(text_so_far)
    return not is_finished and typed_since_start.startswith(text_so_far)


def _remainder(known: _Known, hashes: _Hashes, position: Position) -> Remainder | None:
    typed = _typed(known, hashes.lines, position)
    if typed is None or len(typed) >= len(known.text):
        return None
    rest = known.text[len(typed) :]
    replaced = _replaced(known, typed, rest, hashes, position)
    if replaced is not None:
        if hashes.of(0, known.line) != known.above:
            return None
        return Remainder(known.completion_id, rest, replaced, len(typed))
    kept = _before_closing_line(known, typed, rest, hashes, position)
    if kept is None or hashes.of(0, known.line) != known.above:
        return None
    return Remainder(known.completion_id, kept, 0, len(typed))


def _typed(known: _Known, lines: tuple[str, ...], position: Position) -> str | None:
    """What has been typed since, if it is the text's beginning; its lines are few."""
    before = lines[position.line][: position.character]
    if position.line - known.line > known.text.count("\n"):
        return None
    whole = "\n".join((*lines[known.line : position.line], before))
    if not whole.startswith(known.before):
        return None
    typed = whole[len(known.before) :]
    return typed if known.text.startswith(typed) else None


def _replaced(
    known: _Known, typed: str, rest: str, hashes: _Hashes, position: Position
) -> int | None:
    """Characters behind the cursor that the rest replaces; None if what follows has changed.

    An editor that closes what was just opened changes it by that alone, and one that lets the
    user type over a closing bracket takes that away.
    """
    if hashes.of(position.line + 1, len(hashes.lines)) != known.below:
        return None
    after = hashes.lines[position.line][position.character :]
    for overtyped in range(known.replaced + 1):
        if after == known.rest[overtyped:] and _contains(typed, known.rest[:overtyped]):
            return known.replaced - overtyped
    added = balance(typed).closers
    if after != added + known.rest:
        return None
    return known.replaced + len(added) if _contains(rest, added) else 0


def _before_closing_line(
    known: _Known, typed: str, rest: str, hashes: _Hashes, position: Position
) -> str | None:
    """The rest without its last line, where Enter between brackets has written that line."""
    lines, below = hashes.lines, position.line + 1
    inner, _, last = rest.rpartition("\n")
    if not inner.strip() or lines[position.line][position.character :] or below >= len(lines):
        return None
    closing = balance(typed).closers + known.rest[known.replaced :]
    is_same = lines[below].strip() == last.strip() == closing.strip() != ""
    return inner if is_same and hashes.of(below + 1, len(lines)) == known.below else None


def _contains(text: str, closers: str) -> bool:
    """The text writes the closers itself, in their order."""
    characters = iter(text)
    return all(closer in characters for closer in closers)
