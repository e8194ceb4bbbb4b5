"""A drafter that knows the output of plain decoding, and misuses it as badly as it can."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from engine.drafting.drafter import Drafter, VerifiedStep
from engine.drafting.tree import Draft, Source
from engine.model.constraint import Constraint
from tests.support.drafts import draft_of


@dataclass
class Adversary(Drafter):
    """Drafts random trees whose tokens are true with probability `truth`, else wrong.

    Wrong tokens are neighbours of the true one, random ones, or the true token of another place.
    `text` is the output of plain decoding behind `prompt_len` tokens.
    """

    text: list[int]
    prompt_len: int
    vocab_size: int
    nodes: int
    truth: float
    seed: int
    heard: list[VerifiedStep] = field(default_factory=list)

    def draft(self, context: Sequence[int], constraint: Constraint | None, depth: int) -> Draft:
        """Draft up to `nodes` nodes at most `depth` deep, all within the constraint."""
        written = len(context) - self.prompt_len
        rng = np.random.default_rng((self.seed, written))
        tokens: list[int] = []
        parents: list[int] = []
        depths, states = [0], [constraint]  # those of the root, then of the nodes
        for _ in range(self.nodes):
            parent = len(tokens) - 1 if rng.random() < 0.6 else int(rng.integers(-1, len(tokens)))
            token = self._token(rng, written + depths[parent + 1])
            state = states[parent + 1]
            if depths[parent + 1] < depth and (state is None or state.allows(token)):
                tokens.append(token)
                parents.append(parent)
                depths.append(depths[parent + 1] + 1)
                states.append(state.after(token) if state else None)
        count = len(tokens)
        return draft_of(tokens, parents, [0.5] * count, Source.RECYCLER, [0] * count)

    def _token(self, rng: np.random.Generator, place: int) -> int:
        true = self.text[min(place, len(self.text) - 1)]
        if rng.random() < self.truth:
            return true
        wrong = (
            (true + int(rng.choice([-1, 1]))) % self.vocab_size,
            int(rng.integers(self.vocab_size)),
            int(rng.choice(self.text)),
        )
        return wrong[int(rng.integers(len(wrong)))]

    def update(self, step: VerifiedStep) -> None:
        self.heard.append(step)

    def calibrate(self, step: VerifiedStep) -> None:
        """Learn nothing: the text is known."""
