"""A person who types a known text, reads ghost text, and accepts its correct parts.

It knows no editor and no clock: the caller passes the shown text and since when it is there.
"""

import math
import random
import re
from dataclasses import dataclass, field
from typing import Literal

from lsp_server.saved import KEY

Kind = Literal["key", "word", "line", "all", "slip", "erase"]

READING_S = 0.3  # seconds of reading before ghost text is accepted
_KEY_S, _LINE_START_S = 0.14, 0.5  # medians of seconds before a key
_SPREAD = 0.4  # standard deviation of the logarithm of a key's interval
_WORD = re.compile(r"\s*(?:\w+|[^\w\s]+)")
_LEAST_TAKEN = 2  # characters; typing a single one is as quick as accepting it
_SLIPS = "qzjx"  # wrong characters


@dataclass(frozen=True, slots=True)
class Action:
    """A key: it writes `text`, typed or accepted from ghost text; `erase` deletes a slip."""

    kind: Kind
    text: str


@dataclass(slots=True)
class Person:
    """Types `target`, whose first `position` characters are written.

    The time before a key depends on the seed and on the key's place in the target. It does not
    depend on the shown text: a typed key takes the same time beside any assistant. So do slips:
    a share `typos` of characters is typed wrong first, and the next key deletes the wrong one.
    """

    target: str
    seed: str
    position: int = 0
    typos: float = 0.0
    _spreads: tuple[float, ...] = field(init=False)
    _slips: dict[int, str] = field(init=False)  # by place: the wrong characters still to come
    _is_wrong: bool = field(default=False, init=False)  # a slip stands before the cursor

    def __post_init__(self) -> None:
        draw = random.Random(self.seed)  # noqa: S311 - a simulation
        self._spreads = tuple(draw.gauss(0.0, _SPREAD) for _ in self.target)
        self._slips = {
            place: draw.choice(_SLIPS.replace(right, ""))
            for place, right in enumerate(self.target)
            if draw.random() < self.typos and right.isalnum()
        }

    @property
    def is_done(self) -> bool:
        return self.position >= len(self.target)

    @property
    def rest(self) -> str:
        return self.target[self.position :]

    @property
    def own_intervals(self) -> list[float]:
        """The seconds before each key of a person who types everything."""
        alone, intervals = Person(self.target, self.seed, typos=self.typos), list[float]()
        while not alone.is_done:
            intervals.append(alone.interval())
            alone.act("", "")
        return intervals

    def interval(self) -> float:
        """Return the seconds until the next key: log-normal, with a pause at a line's start."""
        starts_line = not self.target[: self.position].rpartition("\n")[2].strip(" \t")
        median = _LINE_START_S if starts_line else _KEY_S
        return median * math.exp(self._spreads[self.position])

    def act(self, shown: str, read: str) -> Action:
        """Press the next key; the person has read the beginning `read` of the text `shown`."""
        if self._is_wrong:
            self._is_wrong = False
            return Action("erase", "")
        action = self._taken(shown, read)
        if action is None and (slip := self._slips.pop(self.position, "")):
            self._is_wrong = True
            return Action("slip", slip)
        action = action or Action("key", self._typed())
        self.position += len(action.text)
        return action

    def _taken(self, shown: str, read: str) -> Action | None:
        """Accept all of it if it is right, else its first line, else its first word."""
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
        key = KEY.match(self.rest)
        return key[0] if key else ""

    def _ends_word(self, length: int) -> bool:
        return not re.match(r"\w\w", self.rest[length - 1 : length + 1])
