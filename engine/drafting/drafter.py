"""The interface of drafters: they guess the next tokens, and learn which guesses came true."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engine.drafting.tree import EMPTY_DRAFT, Draft, Source
from engine.model.causal_lm import StepOutput
from engine.model.constraint import Constraint
from engine.model.token_tree import TokenTree


@dataclass(frozen=True, slots=True)
class VerifiedStep:
    """One forward pass: the draft, and the model's verdict on it."""

    tree: TokenTree
    draft: Draft
    output: StepOutput

    @property
    def token_ids(self) -> np.ndarray:
        """int64 [accepted + 1]: the written tokens; the last one is the model's own."""
        written: np.ndarray = self.output.chosen[self.output.path]
        return written

    @property
    def accepted(self) -> np.ndarray:
        """bool [nodes]: the drafted nodes that the model accepted."""
        accepted = np.zeros(len(self.draft.tokens), bool)
        accepted[self.output.path[1:] - 1] = True
        return accepted

    @property
    def sources(self) -> list[Source]:
        """The source of each accepted token."""
        return [Source(source) for source in self.draft.sources[self.output.path[1:] - 1]]

    @property
    def log_probs(self) -> np.ndarray:
        """float32 [accepted + 1]: the logarithm of the model's probability for each token."""
        written: np.ndarray = self.output.log_probs[self.output.path]
        return written


class Drafter:
    """The drafter of plain decoding, which guesses nothing. Wrong guesses never change the text."""

    def draft(self, context: Sequence[int], constraint: Constraint | None, depth: int) -> Draft:  # noqa: ARG002 - it looks at nothing
        """Draft at most `depth` tokens deep below the end of `context`, all within `constraint`."""
        return EMPTY_DRAFT

    def update(self, step: VerifiedStep) -> None:
        """Learn for the next draft. Called once for each step."""

    def calibrate(self, step: VerifiedStep) -> None:
        """Learn the rest while the next step runs. Called once for each step, after `update`."""
