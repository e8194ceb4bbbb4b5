"""Which settings write real insertions faster here: one axis at a time, in turn with the default."""

import math
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean, stdev
from typing import Any

from engine.bench.measured import WARM_UP, request_for
from engine.bench.task_sets import ReplayItem
from engine.common_start import common_start
from engine.config import PRESETS, Lookahead, StopRules
from engine.engine import Engine, PromptSizes
from engine.errors import ForegramError
from engine.loader import prompt_sizes
from engine.progress import Progress, shown
from engine.request import ClosedBuffers, CompletionRequest, Done

DECODING = CompletionRequest("", "", stop=StopRules(max_tokens=64))
NUM_ITEMS = 18
_NUM_TRIED, _NUM_SWEPT = 2, 6  # items of all variants, then of the better ones; others confirm
_MOST_SWEPT = 6  # better ones
WINDOWS, NGRAMS = (1, 3, 8, 15), (3, 5, 8, 15)  # W = G and N of the surface, with published recipes
_WEIGHTS = {"threads": 1, "lookahead": 4, "rows": 2, "prompt_tokens": 2}  # shares of the time
_SWEEP_PART = 0.6  # of an axis' time; the rest confirms
_COLD = ("threads", "prompt_tokens")  # what changes the time to read a prompt, too
_NO_SETTING = ("rows",)
_ROWS = (4, 8, 16, 32, 64)
_KEY_MS = 140.0  # per character that a person types, as in `python -m tests.bench typing`
_FEW_ERRORS = {2: 12.7, 3: 4.3, 4: 3.2, 5: 2.8}  # standard errors by items; Student's t, 95 %
_ERRORS = 2.6  # of six items, and of more
_ALL = ClosedBuffers.of_all("")
_DRAFTS = ClosedBuffers(cache_scope="\0", is_all=True)  # no prompt's key begins so: they stay


class TextChangedError(ForegramError):
    """A setting that must not change the text changed it."""

    code = "text_changed"


@dataclass(frozen=True, slots=True)
class Variant:
    """Settings to measure; None leaves one to foregram. `rows` is the most of a step."""

    lookahead: str = "auto"
    rows: int | None = None
    threads: int | None = None
    prompt_tokens: int | None = None


DEFAULT = Variant()


@dataclass(slots=True, eq=False)
class Compared:
    """A variant beside the default, on the same items: above 1, it is faster."""

    axis: str
    variant: Variant
    is_confirmed: bool = False  # on items that did not choose it
    ratios: list[float] = field(default_factory=list)  # the default's time over this one's
    num_changed: int = 0  # items that it wrote otherwise, by a near tie of sums
    steps: int = 0
    tokens: int = 0

    @property
    def value(self) -> str | int:
        """The setting's value."""
        value: str | int = getattr(self.variant, self.axis)
        return value

    @property
    def speed(self) -> float:
        """Geometric mean of the ratios."""
        return math.exp(fmean(map(math.log, self.ratios)))

    @property
    def noise(self) -> float:
        """Relative error of `speed`; infinite for one item."""
        if len(self.ratios) < 2:
            return math.inf
        count = len(self.ratios)
        error = stdev(map(math.log, self.ratios)) / math.sqrt(count)
        return math.expm1(_FEW_ERRORS.get(count, _ERRORS) * error)

    @property
    def tokens_per_step(self) -> float:
        """Tokens that a pass of the model wrote, on average."""
        return self.tokens / max(self.steps, 1)

    @property
    def is_better(self) -> bool:
        """Whether it is faster by more than its noise, on items that did not choose it."""
        return self.is_confirmed and not self.is_open and self.speed > 1 + self.noise

    @property
    def is_open(self) -> bool:
        """Whether the time was over before it could be confirmed."""
        return self.is_confirmed and len(self.ratios) < _NUM_SWEPT


class Tuning:
    """Compares variants with the default, until the time is over."""

    def __init__(
        self,
        load: Callable[[int | None], Engine],  # with so many threads
        items: Sequence[ReplayItem],
        seconds: float,
        progress: Progress,
    ) -> None:
        self.best = DEFAULT
        self.compared: list[Compared] = []
        self._load, self._items, self._progress = load, items, progress
        self._engines: dict[Variant, Engine] = {}  # by threads and prompt
        self.engine = self._engine(DEFAULT)
        self._most_rows = self.engine.learning.budget.most_rows
        self._seconds, self._begun, self._until = seconds, math.nan, math.inf
        self._seconds_shown = 0

    @property
    def surface(self) -> dict[tuple[int, int], Compared]:
        """What was measured of each W and N, with G = W."""
        fixed = ((Lookahead.parse(one.variant.lookahead), one) for one in self._fixed())
        return {
            (of.window_size, of.ngram_size): one
            for of, one in fixed
            if of.window_size == of.guess_size
        }

    def run(self) -> None:
        """Improve one axis after the other. Raises TextChangedError."""
        self._begun, weights = time.monotonic(), dict(_WEIGHTS)
        with shown(self._progress, "comparing settings", round(self._seconds)):
            for axis in _WEIGHTS:
                now = time.monotonic()
                left = self._begun + self._seconds - now
                self._until = now + left * weights[axis] / sum(weights.values())
                del weights[axis]
                self._improve(axis)

    def _improve(self, axis: str) -> None:
        """Sweep an axis, and take its best value if other items confirm it."""
        until, now = self._until, time.monotonic()
        self._until = now + _SWEEP_PART * (until - now)
        swept = self._sweep(axis, self._values(axis))
        if axis == "lookahead" and (fixed := self._fixed()):
            fastest = max(fixed, key=lambda one: one.speed)
            swept += self._sweep(axis, other_guesses(fastest.variant.lookahead))
        self._until = until
        best = max(swept, key=lambda one: one.speed, default=None)
        if best is None or best.speed <= 1:
            return
        final = Compared(axis, best.variant, is_confirmed=True)
        self._measure([final], self._items[_NUM_SWEPT:])
        if final.is_better and axis not in _NO_SETTING:
            self.best = final.variant

    def _sweep(self, axis: str, values: Iterable[str | int]) -> list[Compared]:
        """Measure all values on two items, and return the better ones, measured on four more."""
        changes: list[dict[str, Any]] = [{axis: value} for value in values]
        swept = [Compared(axis, replace(self.best, **change)) for change in changes]
        self._measure(swept, self._items[:_NUM_TRIED])
        tried = sorted((one for one in swept if one.ratios), key=lambda one: -one.speed)
        better = tried[: min((len(tried) + 1) // 2, _MOST_SWEPT)]
        self._measure(better, self._items[_NUM_TRIED:_NUM_SWEPT])
        return better

    def _fixed(self) -> list[Compared]:
        lookaheads = [one for one in self.compared if one.axis == "lookahead" and one.ratios]
        return [one for one in lookaheads if one.value != "off" and not one.is_confirmed]

    def _values(self, axis: str) -> Iterator[str | int]:
        info, cost = self.engine.info, self.engine.learning.budget.cost
        if axis == "lookahead":
            yield from ("off", *PRESETS)
            yield from _unnamed((w, n, w) for n in NGRAMS for w in WINDOWS)
        elif axis == "rows":
            yield from (rows for rows in _ROWS if rows < self._most_rows)
        elif axis == "prompt_tokens":
            sizes = prompt_sizes(cost)
            around = (sizes.first // 2, sizes.first, sizes.most, 2 * sizes.most)
            yield from sorted({min(one, info.context_len // 2) for one in around})
        elif self._is_exact:  # elsewhere, threads change the bits
            most = os.cpu_count() or 1
            yield from sorted({info.threads // 2, 2 * info.threads} & set(range(1, most + 1)))

    def _measure(self, compared: Sequence[Compared], items: Sequence[ReplayItem]) -> None:
        """Run the base and all of these on each item, in changing order, while there is time."""
        self.compared += (one for one in compared if one not in self.compared)
        item_s = 0.0
        for number, item in enumerate(items if compared else ()):
            begun = time.monotonic()
            if begun + item_s > self._until:
                break
            arms: list[Compared | None] = [None, *compared]
            turn = number % len(arms)
            self._compare(compared[0].axis, arms[turn:] + arms[:turn], item)
            now = time.monotonic()
            item_s, seconds_shown = now - begun, round(now - self._begun)
            self._progress.advance(seconds_shown - self._seconds_shown)
            self._seconds_shown = seconds_shown

    @property
    def _is_exact(self) -> bool:
        info = self.engine.info
        return (info.device, info.dtype) == ("cpu", "int8")

    def _compare(self, axis: str, arms: Sequence[Compared | None], item: ReplayItem) -> None:
        runs = [self._run(axis, one.variant if one else self.best, item) for one in arms]
        base_ms, base = runs[arms.index(None)]
        for one, (ms, done) in zip(arms, runs, strict=True):
            if one is None:
                continue
            is_same = (done.token_ids, done.text) == (base.token_ids, base.text)
            if axis != "prompt_tokens" and not is_same:
                if self._is_exact:
                    raise TextChangedError(f"{axis} {one.value} changed the text of {item.id}")
                one.num_changed += 1
                continue
            one.ratios.append(base_ms / ms)
            one.steps += done.cost.steps
            one.tokens += done.cost.tokens

    def _run(self, axis: str, variant: Variant, item: ReplayItem) -> tuple[float, Done]:
        """Return what counts of the time, in ms, and the result."""
        engine = self._engine(variant)
        engine.learning.budget.most_rows = variant.rows or self._most_rows
        request = replace(request_for(item, DECODING), lookahead=Lookahead.parse(variant.lookahead))
        engine.forget(_ALL if axis in _COLD else _DRAFTS)
        if axis != "prompt_tokens":
            done = engine.complete(request)
            return done.cost.decode_ms + (axis in _COLD) * done.cost.prefill_ms, done
        # A person comes to the place, rests while more is read, and types what the text lacks.
        first_ms = engine.complete(replace(request, stop=StopRules(max_tokens=1))).cost.prefill_ms
        engine.complete(replace(request, stop=StopRules(max_tokens=0)))
        engine.forget(_DRAFTS)
        done = engine.complete(request)
        typed = len(item.target) - common_start(done.text, item.target)
        return first_ms + done.cost.prefill_ms + done.cost.decode_ms + _KEY_MS * typed, done

    def _engine(self, variant: Variant) -> Engine:
        """Return an engine of these threads and this prompt; all share the model's weights."""
        key = Variant(threads=variant.threads, prompt_tokens=variant.prompt_tokens)
        if key not in self._engines and key.prompt_tokens is None:
            self._engines[key] = self._load(key.threads)
            self._engines[key].complete(WARM_UP)
        elif key not in self._engines and key.prompt_tokens is not None:
            base = self._engine(replace(key, prompt_tokens=None))
            sizes = PromptSizes(key.prompt_tokens, key.prompt_tokens)
            self._engines[key] = Engine(base.model, base.learning, sizes)
        return self._engines[key]


def other_guesses(lookahead: str) -> Iterator[str]:
    """Yield a fixed lookahead with half and with twice its G."""
    one = Lookahead.parse(lookahead)
    changed = (one.guess_size // 2, 2 * one.guess_size)
    yield from _unnamed((one.window_size, one.ngram_size, size) for size in changed if size)


def _unnamed(wngs: Iterable[tuple[int, int, int]]) -> Iterator[str]:
    """Return those that no preset names, which are tried by their names."""
    return (str(Lookahead("fixed", *wng)) for wng in wngs if wng not in PRESETS.values())
