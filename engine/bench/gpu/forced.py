"""A model that outputs the target of a test set, whatever its own probabilities.

Every step runs in full. Then rows that follow the target choose its next token. So text and
acceptance are those of the set, even with random weights.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from engine.model.causal_lm import CausalModel, Flight, StepInput, StepOutput
from engine.model.token_tree import TokenTree, verify


@dataclass(slots=True)
class ForcedModel:
    """A `CausalModel` that outputs `target` after `start` tokens and the current one."""

    model: CausalModel
    target: Sequence[int] = ()
    start: int = 0

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever else a model says of itself
        return getattr(self.model, name)

    def begin(self, steps: Sequence[StepInput]) -> "ForcedFlight":
        """Start the steps."""
        return ForcedFlight(self, self.model.begin(steps), steps)

    def spoken(self, step: StepInput, output: StepOutput) -> StepOutput:
        """Replace the choices of rows that follow the target.

        Other rows, and those at its end, keep the model's choice.
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
        """Wait for the outputs, with the target's tokens as choices."""
        return [
            None if output is None else self.model.spoken(step, output)
            for step, output in zip(self.steps, self.flight.finish(), strict=True)
        ]


def followers(tree: TokenTree, target: np.ndarray) -> np.ndarray:
    """Return the path of rows (int64), from the root, whose tokens begin `target`."""
    said = np.append(target, -1)  # no token follows its end
    return verify(tree.token_ids, tree.parents, said[np.minimum(tree.depths, len(target))])
