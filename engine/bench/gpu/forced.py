"""A model that says what a test set says, whatever it holds likely.

Every step runs in full. Then rows that follow the target say what the target says next, so text
and acceptance are those of the set, also where the weights are random.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from engine.model.causal_lm import CausalModel, Flight, StepInput, StepOutput
from engine.model.token_tree import TokenTree, verify


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
