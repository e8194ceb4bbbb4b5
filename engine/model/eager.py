"""Steps of a model that computes on the host: one after the other, when their outputs are wanted."""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from engine.model.causal_lm import NUM_TOP, Allowed, StepInput, StepOutput, check_room
from engine.model.log_probs import log_probs
from engine.model.sampling import choose
from engine.model.token_tree import MAX_ROWS
from engine.model.top_tokens import Logits, top_tokens
from engine.model.verify import verify


@dataclass(frozen=True, slots=True)
class EagerFlight:
    """A `Flight` in which nothing goes on before `finish`."""

    steps: Sequence[StepInput]
    logits_of: Callable[[StepInput], Logits]

    def finish(self) -> list[StepOutput | None]:
        """Run the model, choose, and walk the path that agrees."""
        return [None if step.is_dropped else self._output(step) for step in self.steps]

    def _output(self, step: StepInput) -> StepOutput | None:
        began = time.perf_counter()
        logits = self.logits_of(step)
        if not step.has_head:
            return None
        tree = step.tree
        values, top = logits.values, top_tokens(logits, NUM_TOP)
        is_likeliest = step.sampling.temperature == 0.0 and step.allowed is None
        if is_likeliest and values.device.type == "cpu":  # on a GPU equals have no order
            chosen = np.ascontiguousarray(top[:, 0])  # what `choose` would say
        else:
            chosen = choose(values, step.slot.length + 1 + tree.depths, step.sampling, step.allowed)
        path = verify(tree.token_ids, tree.parents, chosen)
        return StepOutput(
            chosen=chosen,
            path=path,
            log_probs=_on_path(values, path, chosen, step.allowed),
            top_tokens=lambda: top,
            ms=1000 * (time.perf_counter() - began),
            step_rows=tree.num_rows,
            logits=values.clone() if step.wants_logits else None,
        )


class EagerModel(ABC):
    """A `CausalModel` of one sequence, which pads no steps and reserves no memory."""

    row_buckets: tuple[int, ...] = ()
    most_rows = most_read_rows = MAX_ROWS
    max_sequences = 1
    reserved_bytes = 0

    def begin(self, steps: Sequence[StepInput]) -> EagerFlight:
        """Check that the steps' rows have room; the work is done when their outputs are wanted."""
        check_room(steps, self.most_read_rows)
        return EagerFlight(steps, self._forward)

    @abstractmethod
    def _forward(self, step: StepInput) -> Logits:
        """Run the rows and write their keys and values. Without a head nobody looks at the logits."""


def _on_path(
    logits: torch.Tensor, path: np.ndarray, chosen: np.ndarray, allowed: Allowed | None
) -> np.ndarray:
    """float32 [rows]: nan for the rows that nobody will ask about."""
    found = np.full(len(chosen), np.nan, np.float32)
    found[path] = log_probs(logits, path, chosen[path], allowed)
    return found
