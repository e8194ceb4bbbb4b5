"""What a person sees behind the cursor, and a record of all that ever appeared there."""

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from engine.common_start import common_start


class Ghost(NamedTuple):
    """Text behind a cursor, and the second in which each of its characters appeared."""

    text: str = ""
    since: tuple[float, ...] = ()

    def standing_since(self, moment: float) -> str:
        """What has been there since `moment` or longer."""
        return self.text[: bisect_right(self.since, moment)]

    def typed_along(self, typed: str) -> "Ghost":
        """What is left of it behind `typed`; nothing where it does not begin so."""
        length = len(typed)
        return (
            Ghost(self.text[length:], self.since[length:])
            if self.text.startswith(typed)
            else NOTHING
        )

    def replaced(self, text: str, now: float) -> "Ghost":
        """What an answer makes of it: a longer or shorter text keeps what stands there already."""
        kept = min(len(text), len(self.text))
        if text[:kept] != self.text[:kept]:
            kept = 0
        return Ghost(text, self.since[:kept] + (now,) * (len(text) - kept))


NOTHING = Ghost()


@dataclass(slots=True)
class Suggestion:
    """Text that appeared, or what was added to text that stood there. Times in seconds."""

    at: float
    key_at: float  # the last key before it
    gap_s: float  # how long nothing had stood there; 0 in place of another text
    text: str  # the whole of it, from the cursor
    new_chars: int  # of these, behind what had been shown before
    wrong_chars: int  # of the new ones, behind the first that the target does not have
    request_s: float  # the request that brought it waited so long
    begun_s: float | None = None  # its generation took so long until here; None: from memory


@dataclass(slots=True)
class Screen:
    """Ghost text while `rest` is still to be written."""

    now: Callable[[], float]
    rest: str
    ghost: Ghost = NOTHING
    suggestions: list[Suggestion] = field(default_factory=list)
    visible: list[tuple[float, float]] = field(default_factory=list)  # from, to; the last is open
    key_at: float = 0.0  # the last key
    _gone_at: float = 0.0
    _shown_since: float | None = None
    _known: str = ""  # the last text that was shown, less what was written of it

    def write(self, text: str) -> None:
        """The person writes `text`; ghost text that begins so stays."""
        self.rest = self.rest.removeprefix(text)
        self.key_at = now = self.now()
        self._known = self._known[len(text) :] if self._known.startswith(text) else ""
        # At the same moment, or text that a key took away would have stood there a little longer.
        self._set(self.ghost.typed_along(text), now)

    def show(self, text: str, request_s: float) -> Suggestion | None:
        """An answer is there; nothing in it takes the ghost text away. What is new of it."""
        now, former = self.now(), self.ghost.text
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
