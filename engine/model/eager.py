"""Steps of a model that computes on the host: one after the other, when their outputs are wanted."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from engine.model.causal_lm import NUM_TOP, StepInput, StepOutput
from engine.model.sampling import choose
from engine.model.top_tokens import margins, top_tokens
from engine.model.verify import verify

# Logits float32 [rows, vocab] of a step; of one without a head nothing that is looked at.
LogitsOf = Callable[[StepInput], torch.Tensor]


@dataclass(frozen=True, slots=True)
class EagerFlight:
    """A `Flight` in which nothing goes on before `finish`."""

    steps: Sequence[StepInput]
    logits_of: LogitsOf

    def finish(self) -> list[StepOutput | None]:
        """Run the model, choose, and walk the path that agrees."""
        return [None if step.is_dropped else self._output(step) for step in self.steps]

    def _output(self, step: StepInput) -> StepOutput | None:
        began = time.perf_counter()
        logits = self.logits_of(step)
        if not step.has_head:
            return None
        tree = step.tree
        chosen = choose(logits, step.slot.length + 1 + tree.depths, step.sampling, step.allowed)
        path = verify(tree.token_ids, tree.parents, chosen)
        return StepOutput(
            chosen=chosen,
            path=path,
            margins_of=lambda rows: margins(logits[torch.from_numpy(rows)]),
            top_tokens=lambda: top_tokens(logits, NUM_TOP),
            ms=1000 * (time.perf_counter() - began),
            step_rows=tree.num_rows,
            logits=logits,
        )
