"""The text that a person sees behind the cursor, and a record of all that appeared there."""

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from engine.common_start import common_start


class Ghost(NamedTuple):
    """Text behind a cursor, and the second at which each of its characters appeared."""

    text: str = ""
    since: tuple[float, ...] = ()

    def standing_since(self, moment: float) -> str:
        """Return the text that has been there since `moment` or longer."""
        return self.text[: bisect_right(self.since, moment)]

    def typed_along(self, typed: str) -> "Ghost":
        """Return the rest of it behind `typed`; empty if it begins otherwise."""
        length = len(typed)
        return (
            Ghost(self.text[length:], self.since[length:])
            if self.text.startswith(typed)
            else NOTHING
        )

    def replaced(self, text: str, now: float) -> "Ghost":
        """Return the ghost after an answer: characters that stay keep their times."""
        kept = min(len(text), len(self.text))
        if text[:kept] != self.text[:kept]:
            kept = 0
        return Ghost(text, self.since[:kept] + (now,) * (len(text) - kept))


NOTHING = Ghost()


@dataclass(slots=True)
class Suggestion:
    """Text that appeared, or was added to text that was there. Times in seconds."""

    at: float
    key_at: float  # the last key before it
    gap_s: float  # seconds without a text before; 0 in place of another text
    text: str  # the whole text, from the cursor
    new_chars: int  # characters behind the text shown before
    wrong_chars: int  # new characters from the first wrong one on
    request_s: float  # seconds from its request to the text
    begun_s: float | None = None  # seconds since its generation began; None: from memory


@dataclass(slots=True)
class Screen:
    """Ghost text before the cursor's remaining text, `rest`."""

    now: Callable[[], float]
    rest: str
    ghost: Ghost = NOTHING
    suggestions: list[Suggestion] = field(default_factory=list)
    visible: list[tuple[float, float]] = field(default_factory=list)  # start, end; the last is open
    key_at: float = 0.0  # the last key
    num_flickers: int = 0  # answers that withdrew or changed what they found
    _gone_at: float = 0.0
    _shown_since: float | None = None
    _known: str = ""  # the last text shown, without its written part
    _known_before: str = ""  # the same before the last key

    def write(self, text: str) -> None:
        """Write `text`; ghost text that begins with it stays."""
        self.rest = self.rest.removeprefix(text)
        self.key_at = now = self.now()
        self._known_before = self._known
        self._known = self._known[len(text) :] if self._known.startswith(text) else ""
        # At the same moment, or text that a key removed would count a little longer.
        self._set(self.ghost.typed_along(text), now)

    def erase(self) -> None:
        """Delete the wrong character written last; text that comes back then is nothing new."""
        self.key_at = now = self.now()
        self._known = self._known_before
        self._set(NOTHING, now)

    def show(self, text: str, request_s: float) -> Suggestion | None:
        """Show an answer, of which an empty one removes ghost text; return its new part."""
        now, former = self.now(), self.ghost.text
        self.num_flickers += not text.startswith(former)
        added = len(text) - common_start(self._known, text)
        suggestion = None
        if added:
            right = common_start(text, self.rest)
            gap_s = 0.0 if former else now - self._gone_at
            wrong = min(added, len(text) - right)
            suggestion = Suggestion(now, self.key_at, gap_s, text, added, wrong, request_s)
            self.suggestions.append(suggestion)
        if text:
            self._known = text
        self._set(self.ghost.replaced(text, now), now)
        return suggestion

    def close(self) -> None:
        self._set(NOTHING, self.now())

    def _set(self, ghost: Ghost, now: float) -> None:
        was, self.ghost = self.ghost.text, ghost
        if ghost.text and not was:
            self._shown_since = now
        elif was and not ghost.text and self._shown_since is not None:
            self.visible.append((self._shown_since, now))
            self._shown_since, self._gone_at = None, now
