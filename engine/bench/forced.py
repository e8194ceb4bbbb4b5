"""Replays with the human's text as the model's output: drafting and real steps, whatever the model.

Every step runs in full. Then rows that follow the target say what the target says next, so text
and acceptance are those of the set, also where the weights are random.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numba
import numpy as np

from engine.bench.decoding_options import DecodingOptions
from engine.bench.measured import WARM_UP, Bench, Measured
from engine.bench.replay import OnProgress, ReplayReport
from engine.bench.task_sets import ReplayItem
from engine.decoding.stepping import MendedAnswer, stepper_of
from engine.engine import Engine, EngineOptions, wanted_model
from engine.learning import Learning
from engine.model.causal_lm import CacheSlot
from engine.model.loading.loaded_model import LoadedModel
from engine.model.step_order import StepAnswer, StepOrder, Stepper
from engine.model.token_tree import TokenTree
from engine.progress import Progress
from engine.request import CompletionRequest


@dataclass(slots=True)
class ForcedStepper:
    """A `Stepper` whose rows say `target`, int64, as long as they follow it.

    Others, and those at its end, say what the model says.
    """

    inner: Stepper
    target: np.ndarray
    _order: StepOrder | None = field(default=None, init=False)

    @property
    def length(self) -> int:
        """Committed tokens."""
        return self.inner.length

    @property
    def capacity(self) -> int:
        """Tokens that fit, committed and in flight."""
        return self.inner.capacity

    def begin(self, order: StepOrder) -> None:
        """Start the step."""
        self._order = order
        self.inner.begin(order)

    def finish(self) -> StepAnswer:
        """Wait for the step, and let the target speak. Raises ValueError before `begin`."""
        if self._order is None:
            raise ValueError("no step was begun")
        order, self._order = self._order, None
        answer = self.inner.finish()
        if not len(self.target):
            return answer
        path = followers(order.tree, self.target)
        spoken = self.target[: len(path)]
        chosen = answer.chosen.copy()
        chosen[path[: len(spoken)]] = spoken
        return MendedAnswer(chosen, path, answer)

    def commit(self, rows: Sequence[int]) -> None:
        """Keep the path `rows` of the finished step."""
        self.target = self.target[len(rows) :]
        self.inner.commit(rows)

    def abandon(self) -> None:
        """Forget the step that was begun."""
        self._order = None
        self.inner.abandon()


def followers(tree: TokenTree, target: np.ndarray) -> np.ndarray:
    """Rows, int64, from the root on, whose tokens are those that `target` begins with."""
    rows: np.ndarray = _followers(tree.token_ids, tree.parents, target)
    return rows


@numba.njit("int64[::1](int64[::1], int32[::1], int64[::1])", cache=True)
def _followers(token_ids: np.ndarray, parents: np.ndarray, target: np.ndarray) -> np.ndarray:
    path, depth = np.zeros(len(token_ids), np.int64), 0
    for row in range(1, len(token_ids)):  # parents come before their children
        if depth == len(target):
            break
        if parents[row] == path[depth] and token_ids[row] == target[depth]:
            depth += 1
            path[depth] = row
    return path[: depth + 1]


@dataclass(slots=True)
class Script:
    """What the model is made to say next; its `stepper` is for an engine's `make_stepper`."""

    target: Sequence[int] = ()

    def stepper(self, slot: CacheSlot) -> Stepper:
        """Step `slot` by the target."""
        return ForcedStepper(stepper_of(slot), np.array(self.target, np.int64))


@dataclass(frozen=True, slots=True)
class ForcedReport:
    """What became of the items, and those whose text is not the target's: each is a defect."""

    replay: ReplayReport
    inexact: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ForcedReplay:
    """An engine whose model says what `script` says. `encode` is its tokenizer's."""

    engine: Engine
    script: Script
    encode: Callable[[str], Sequence[int]]

    def run(
        self,
        items: Sequence[ReplayItem],
        options: DecodingOptions,
        on_progress: OnProgress,
        seconds: float = float("inf"),
    ) -> ForcedReport:
        """Measure items, off and on in alternating order, until there is no time for more."""
        self.warm_up()
        bench = Bench(self.engine)
        runs: dict[str, list[Measured]] = {}
        inexact, end = [], time.monotonic() + seconds
        for number, item in enumerate(items):
            request = self.request(item, options)
            run = bench.measure(item.id, item.package, request, off_first=number % 2 == 0)
            runs.setdefault(item.kind, []).append(run)
            if not run.off.token_ids == run.on.token_ids == tuple(self.script.target):
                inexact.append(item.id)
            on_progress(number + 1, len(items))
            if time.monotonic() > end:
                break
        return ForcedReport(ReplayReport(runs), tuple(inexact))

    def warm_up(self) -> None:
        """Complete what is no item, so that the first one finds all code compiled."""
        self.script.target = ()
        self.engine.complete(WARM_UP)

    def request(self, item: ReplayItem, options: DecodingOptions) -> CompletionRequest:
        """Make the item's target, behind what token healing took back, all that is said.

        No rule ends the completion before that.
        """
        request = replace(options, stops_by_rules=False).request(item)
        owed = self.engine.prompt(request).dropped.decode("utf-8", "replace")
        self.script.target = self.encode(owed + item.target)
        length = max(1, len(self.script.target))
        stop = replace(request.stop, max_tokens=length, max_blank_lines=length)
        return replace(request, stop=stop)


def forced_replay(
    model: LoadedModel, options: EngineOptions, learned: Path, progress: Progress
) -> ForcedReplay:
    """Make an engine around `model`. It learns in the folder `learned`, which should be empty."""
    script = Script()
    learning = Learning.load(learned, "forced", model.causal_lm, progress)
    engine = Engine(model, learning, options, script.stepper)
    return ForcedReplay(engine, script, model.tokenizer.encode)


def load_forced(options: EngineOptions, learned: Path, progress: Progress) -> ForcedReplay:
    """Load the model that the options name. Raises ForegramError."""
    return forced_replay(wanted_model(options, progress), options, learned, progress)
