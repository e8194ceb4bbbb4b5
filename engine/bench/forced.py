"""Replays with the human's text as the model's output: drafting and real steps, whatever the model.

Every step runs in full. Then rows that follow the target say what the target says next, so text
and acceptance are those of the set, also where the weights are random.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from engine.bench.measured import Bench, Measured
from engine.bench.replay import ReplayReport
from engine.bench.requests import request_for, without_rules
from engine.bench.task_sets import ReplayItem
from engine.engine import Engine
from engine.learning import Learning
from engine.model.causal_lm import CausalModel, Flight, StepInput, StepOutput
from engine.model.loading.loaded_model import LoadedModel
from engine.model.token_tree import TokenTree
from engine.model.verify import verify
from engine.options import EngineOptions
from engine.progress import Progress
from engine.request import CompletionRequest


@dataclass(slots=True)
class ForcedModel:
    """A `CausalModel` that says `target` behind `start` tokens and the current one."""

    model: CausalModel
    target: Sequence[int] = ()
    start: int = 0

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever else a model says of itself
        return getattr(self.model, name)

    def begin(self, steps: Sequence[StepInput]) -> "ForcedFlight":
        """Start the steps."""
        return ForcedFlight(self, self.model.begin(steps), steps)

    def spoken(self, step: StepInput, output: StepOutput) -> StepOutput:
        """Let the target speak in a step, as far as its rows follow it.

        Others, and those at its end, say what the model says.
        """
        target = np.array(self.target[step.slot.length - self.start :], np.int64)
        if not len(target):
            return output
        path = followers(step.tree, target)
        chosen = output.chosen.copy()
        chosen[path[: len(target)]] = target[: len(path)]
        return replace(
            output, chosen=chosen, path=path, log_probs=np.zeros(len(chosen), np.float32)
        )


@dataclass(frozen=True, slots=True)
class ForcedFlight:
    """A `Flight` of a forced model."""

    model: ForcedModel
    flight: Flight
    steps: Sequence[StepInput]

    def finish(self) -> list[StepOutput | None]:
        """Wait for the outputs, and let the target speak."""
        return [
            None if output is None else self.model.spoken(step, output)
            for step, output in zip(self.steps, self.flight.finish(), strict=True)
        ]


def followers(tree: TokenTree, target: np.ndarray) -> np.ndarray:
    """Rows, int64, from the root on, whose tokens are those that `target` begins with."""
    said = np.append(target, -1)  # at its end nothing follows
    return verify(tree.token_ids, tree.parents, said[np.minimum(tree.depths, len(target))])


@dataclass(frozen=True, slots=True)
class ForcedReplay:
    """An engine whose model is forced. `encode` is its tokenizer's."""

    engine: Engine
    model: ForcedModel
    encode: Callable[[str], Sequence[int]]

    def run(self, items: Iterable[ReplayItem], decoding: CompletionRequest) -> ReplayReport:
        """Measure items, off and on in alternating order; the report names inexact ones."""
        runs: dict[str, list[Measured]] = {}
        inexact = []
        ask = partial(self.request, decoding=decoding)
        for item, run in Bench(self.engine).measure(items, ask, lambda item: item.package):
            runs.setdefault(item.kind, []).append(run)
            if not run.off.token_ids == run.on.token_ids == tuple(self.model.target):
                inexact.append(item.id)
        return ReplayReport(runs, inexact)

    def request(self, item: ReplayItem, decoding: CompletionRequest) -> CompletionRequest:
        """Make the item's target, behind what token healing took back, all that is said.

        No rule ends the completion before that.
        """
        request = request_for(item, decoding)
        prompt = self.engine.prompt(request)
        self.model.start = len(prompt.ids) - 1
        self.model.target = self.encode(prompt.dropped.decode("utf-8", "replace") + item.target)
        return replace(request, stop=without_rules(max(1, len(self.model.target))))


def forced_replay(
    model: LoadedModel, options: EngineOptions, learned: Path, progress: Progress
) -> ForcedReplay:
    """Make an engine around `model`. It learns in the folder `learned`, which should be empty."""
    forced = ForcedModel(model.causal_lm)
    learning = Learning.load(learned, "forced", model.causal_lm, progress)
    engine = Engine(replace(model, causal_lm=forced), learning, options)
    return ForcedReplay(engine, forced, model.tokenizer.encode)
