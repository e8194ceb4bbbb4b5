"""How often a model's suggestions turn out right, and what is asked of it for that.

A model that is too sure of itself calls its texts more probable than they are. One number for each
model mends it, as a temperature would of the text as a whole: what it calls `p` turns out right with
the probability `p ** overconfidence`. So suggestions that are to be right with the probability `c`
are asked for with the threshold `c ** (1 / overconfidence)`.

The number is the likeliest one for what became of the suggestions here, and stays near 1 until some
hundred of them are known. For each model a file keeps counts, and no text. They are never sent.
"""

import math
from bisect import bisect_left
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Literal, Self
from urllib.parse import quote

import msgspec
from msgspec import Meta

from engine.atomic_write import atomic_write, read_kept
from engine.host.protocol import Status
from lsp_server.settings import Settings

_BINS = 50  # of equal width, from 0 to 1
_MOST = 4_000  # outcomes; from then on old ones count for less and less
_EXPONENTS = [number / 20 for number in range(10, 41)]  # from 0.5 to 2: a few odd days do no harm
_PRIOR = 0.71, 142, 58  # a probability, and right and wrong suggestions of it: as often as said

_Counts = Annotated[
    tuple[Annotated[int, Meta(ge=0, le=_MOST)], ...], Meta(min_length=_BINS, max_length=_BINS)
]
_NONE = (0,) * _BINS


class Outcomes(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How many suggestions were right and how many wrong, by how probable they were said to be.

    [bins]; a text is as probable as the product of its tokens' probabilities.
    """

    version: Literal[1] = 1
    right: _Counts = _NONE
    wrong: _Counts = _NONE

    @classmethod
    def of(cls, confidence: float, *, is_right: bool) -> Self:
        """A single one, said to be right with the probability `confidence`."""
        place = min(int(confidence * _BINS), _BINS - 1)
        one = tuple(int(number == place) for number in range(_BINS))
        return cls(right=one) if is_right else cls(wrong=one)

    def plus(self, other: "Outcomes") -> "Outcomes":
        """Both. Where that is more than is kept, each counts for half."""
        right, wrong = _sums(self.right, other.right), _sums(self.wrong, other.wrong)
        while sum(right) + sum(wrong) > _MOST:
            right, wrong = (tuple(count // 2 for count in counts) for counts in (right, wrong))
        return Outcomes(right=right, wrong=wrong)

    @property
    def total(self) -> int:
        """How many there are."""
        return sum(self.right) + sum(self.wrong)

    @property
    def overconfidence(self) -> float:
        """The likeliest exponent; above 1, the model is too sure of itself."""
        seen = [*self._seen(), _PRIOR]

        def falls(place: int) -> bool:
            """The logarithm of the likelihood is concave: behind its highest place all fall."""
            here, behind = _EXPONENTS[place : place + 2]
            return _log_likelihood(behind, seen) <= _log_likelihood(here, seen)

        return _EXPONENTS[bisect_left(range(len(_EXPONENTS) - 1), x=True, key=falls)]

    def sentence(self, min_confidence: float) -> str:
        """What they say of the model, and of the threshold."""
        if not self.total:
            return f"no suggestion's outcome is known yet: {min_confidence:g} is asked for as it is"
        said = sum(number * (right + wrong) for number, right, wrong in self._seen()) / self.total
        asked = threshold(min_confidence, self.overconfidence)
        return (
            f"of {self.total:,} suggestions {sum(self.right) / self.total:.0%} were right, and "
            f"{said:.0%} said to be: {min_confidence:g} is asked for as {asked:.2f}"
        )

    def _seen(self) -> Iterator[tuple[float, int, int]]:
        """The probability in the middle of each bin, and what became of the suggestions there."""
        for place, (right, wrong) in enumerate(zip(self.right, self.wrong, strict=True)):
            if right or wrong:
                yield (place + 0.5) / _BINS, right, wrong


def threshold(min_confidence: float, overconfidence: float) -> float:
    """What a model has to say of a text that is to be so probable."""
    return float(min_confidence ** (1 / overconfidence))


class Calibrator:
    """What one language server knows of the model that it asks, and learns of it."""

    def __init__(self, settings: Callable[[], Settings]) -> None:
        self._settings = settings
        self._file: Path | None = None  # of the model; None: nothing is learned
        self._known = Outcomes()
        self._news = Outcomes()  # those of `_known` that are not in the file
        self._overconfidence = 1.0

    def follow(self, status: Status) -> None:
        """From now on this host's model is asked."""
        file = outcome_file(self._settings(), status)
        if file != self._file:
            self.save()
            self._file, self._news = file, Outcomes()
            self._know(read_outcomes(file))

    def asked(self, min_confidence: float) -> float:
        """The threshold for suggestions that are to be so probable."""
        if not self._settings().calibrate:
            return min_confidence
        return threshold(min_confidence, self._overconfidence)

    def note(self, confidence: float, *, is_right: bool) -> None:
        """A suggestion that was said to be so probable turned out right, or wrong."""
        if self._settings().calibrate and self._file is not None:
            one = Outcomes.of(confidence, is_right=is_right)
            self._news = self._news.plus(one)
            self._know(self._known.plus(one))

    def save(self) -> None:
        """Keep what was learned beside what others have; where that fails, it lasts until the end."""
        if self._file is None or not self._news.total:
            return
        self._know(read_outcomes(self._file).plus(self._news))
        with suppress(OSError):
            with atomic_write(self._file) as file:
                file.write(msgspec.json.encode(self._known))
            self._news = Outcomes()

    def _know(self, outcomes: Outcomes) -> None:
        self._known, self._overconfidence = outcomes, outcomes.overconfidence


def outcome_file(settings: Settings, status: Status) -> Path:
    """Where the outcomes of a host's model are kept; the host has loaded it."""
    name = quote(f"{status.model} {status.dtype}", safe="")
    return settings.cache_folder / "outcomes" / f"{name}.json"


def outcome_sentence(settings: Settings, status: Status) -> str:
    """What became of a host's suggestions, and what follows for `min_confidence`."""
    wanted = settings.min_confidence
    if not settings.calibrate:
        return f"`calibrate` is off: {wanted:g} is asked for as it is"
    return read_outcomes(outcome_file(settings, status)).sentence(wanted)


def read_outcomes(path: Path) -> Outcomes:
    """What is kept; none where the file is missing, damaged, or of another version."""
    return read_kept(path, Outcomes) or Outcomes()


def _sums(one: _Counts, other: _Counts) -> tuple[int, ...]:
    return tuple(map(sum, zip(one, other, strict=True)))


def _log_likelihood(exponent: float, seen: list[tuple[float, int, int]]) -> float:
    """Of so many right and wrong suggestions, by how probable they were said to be."""
    return sum(
        right * exponent * math.log(number) + wrong * math.log1p(-(number**exponent))
        for number, right, wrong in seen
    )
