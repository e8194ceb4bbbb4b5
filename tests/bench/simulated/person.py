"""A person who types a known text, looks at ghost text, and takes what is right of it.

Nothing here knows an editor or a clock: who runs it says what is shown, and since when.
"""

import math
import random
import re
from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["key", "word", "line", "all"]

READING_S = 0.3  # ghost text is looked at for so long before any of it is taken
_KEY_S, _LINE_START_S = 0.14, 0.5  # medians
_SPREAD = 0.4  # of the logarithm of a key's interval
_KEY = re.compile(r"\n[ \t]*|.")
_WORD = re.compile(r"\s*(?:\w+|[^\w\s]+)")
_LEAST_TAKEN = 2  # characters: one is typed as soon as taken


@dataclass(frozen=True, slots=True)
class Action:
    """What a key does: it writes `text`, of the person's own or of ghost text."""

    kind: Kind
    text: str


@dataclass(slots=True)
class Person:
    """Types `target`, whose first `position` characters are written.

    How long it is until a key depends on the seed and on where the key stands in the target, not
    on what is shown: whoever shows what, a key that is typed takes the same time.
    """

    target: str
    seed: str
    position: int = 0
    _spreads: tuple[float, ...] = field(init=False)

    def __post_init__(self) -> None:
        draw = random.Random(self.seed)  # noqa: S311 - a simulation
        self._spreads = tuple(draw.gauss(0.0, _SPREAD) for _ in self.target)

    @property
    def is_done(self) -> bool:
        return self.position >= len(self.target)

    @property
    def rest(self) -> str:
        return self.target[self.position :]

    @property
    def own_intervals(self) -> list[float]:
        """Seconds before each key of one who has to type all of it."""
        return [self._interval(key.start()) for key in _KEY.finditer(self.target)]

    def interval(self) -> float:
        """Seconds until the next key: log-normal, with a pause where a line starts."""
        return self._interval(self.position)

    def act(self, shown: str, read: str) -> Action:
        """Press the next key, before ghost text `shown`, of which the beginning `read` is read."""
        action = self._taken(shown, read) or Action("key", self._typed())
        self.position += len(action.text)
        return action

    def _interval(self, position: int) -> float:
        starts_line = not self.target[:position].rpartition("\n")[2].strip(" \t")
        median = _LINE_START_S if starts_line else _KEY_S
        return median * math.exp(self._spreads[position])

    def _taken(self, shown: str, read: str) -> Action | None:
        """All of it where it is right, else its first line, else its first word."""
        if shown == read and self._is_right(shown):
            return Action("all", shown)
        line, line_end, _ = read.partition("\n")
        if line_end and self._is_right(line) and (self.rest + "\n").startswith(line + "\n"):
            return Action("line", line)
        word = _WORD.match(read)
        if word and self._is_right(word[0]) and self._ends_word(len(word[0])):
            return Action("word", word[0])
        return None

    def _is_right(self, text: str) -> bool:
        return len(text) >= _LEAST_TAKEN and self.rest.startswith(text)

    def _typed(self) -> str:
        key = _KEY.match(self.rest)
        return key[0] if key else ""

    def _ends_word(self, length: int) -> bool:
        return not re.match(r"\w\w", self.rest[length - 1 : length + 1])
