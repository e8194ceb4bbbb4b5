"""The lookahead decoder: draft, forward, verify, commit.

What it writes is, token for token, what it writes with `NoDrafts`, which is plain decoding: a row's
logits do not depend on the other rows, noise is keyed by position, and a drafted token stands only
where the row before it chose the same token.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch

from engine.config import Sampling
from engine.decoding.constraint import Constraint
from engine.decoding.sampling import choose
from engine.decoding.tree import EMPTY_DRAFT, Draft, Source
from engine.decoding.verify import Verdict, verify
from engine.model.causal_lm import MAX_ROWS, CacheSlot, TokenTree


@dataclass(frozen=True, slots=True)
class Step:
    """One forward pass: the tokens it wrote and what they cost.

    `sources` names the drafter of each accepted token; the last token is always the model's own.
    """

    token_ids: tuple[int, ...]
    sources: tuple[Source, ...]
    rows: int
    ms: float


@dataclass(frozen=True, slots=True)
class VerifiedStep:
    """What a drafter can learn from: the draft, which nodes agreed, the logits of all rows.

    `accepted` bool [nodes]; `logits` float32 [nodes + 1, vocab]; `chosen` int64 [nodes + 1].
    """

    tree: TokenTree
    draft: Draft
    accepted: np.ndarray
    logits: torch.Tensor
    chosen: np.ndarray
    verdict: Verdict
    ms: float


class Drafter(Protocol):
    """Guesses what follows. It may be wrong, never harmful."""

    def draft(self, context: Sequence[int], constraint: Constraint, depth: int) -> Draft:
        """Draft at most `depth` tokens deep below the end of `context`, all within `constraint`."""
        ...

    def learn(self, step: VerifiedStep) -> None:
        """Hear what became of the last draft. Called once for each."""
        ...


class NoDrafts:
    """Plain decoding."""

    def draft(self, context: Sequence[int], constraint: Constraint, depth: int) -> Draft:  # noqa: ARG002 - it looks at nothing
        """Draft nothing."""
        return EMPTY_DRAFT

    def learn(self, step: VerifiedStep) -> None:
        """Learn nothing."""


@dataclass(slots=True)
class Decoder:
    """One completion over one slot, which holds all of the prompt but its last token."""

    slot: CacheSlot
    drafter: Drafter
    sampling: Sampling
    constraint: Constraint
    cancelled: Callable[[], bool]

    def steps(self, current: int, context: Sequence[int], max_tokens: int) -> Iterator[Step]:
        """Decode from `current`, the prompt's last token, until `max_tokens` or the slot is full.

        `context` are the tokens that drafts continue, as the file reads up to the cursor. Ends
        within one step after `cancelled`.
        """
        written = list(context)
        left = max_tokens
        end = self.slot.capacity - MAX_ROWS  # a step's rows fit behind every text, drafted or not
        while left > 0 and self.slot.length < end and not self.cancelled():
            depth = min(left, end - self.slot.length) - 1
            draft = self.drafter.draft(written, self.constraint, depth)
            step = self._step(current, draft)
            written += step.token_ids
            current = step.token_ids[-1]
            left -= len(step.token_ids)
            yield step

    def _step(self, current: int, draft: Draft) -> Step:
        began = time.perf_counter()
        tree = _tree(current, draft)
        logits = self.slot.step(tree)
        constraints = self._constraints(tree)
        allowed = [constraint.allowed_ids for constraint in constraints]
        is_free = all(ids is None for ids in allowed)
        positions = self.slot.length + 1 + tree.depths
        chosen = choose(logits, positions, self.sampling, None if is_free else allowed)
        verdict = verify(tree.token_ids, tree.parents, chosen)
        self.slot.commit(verdict.rows.tolist())
        self.constraint = constraints[verdict.rows[-1]].after(int(verdict.token_ids[-1]))
        ms = 1000 * (time.perf_counter() - began)
        accepted = np.zeros(len(draft.tokens), bool)
        accepted[verdict.rows[1:] - 1] = True
        self.drafter.learn(VerifiedStep(tree, draft, accepted, logits, chosen, verdict, ms))
        sources = tuple(Source(source) for source in draft.sources[verdict.rows[1:] - 1])
        return Step(tuple(verdict.token_ids.tolist()), sources, tree.num_rows, ms)

    def _constraints(self, tree: TokenTree) -> list[Constraint]:
        """What each row's choice has to keep to."""
        constraints = [self.constraint]
        for token, parent in zip(tree.token_ids[1:], tree.parents[1:], strict=True):
            constraints.append(constraints[parent].after(int(token)))
        return constraints


def _tree(current: int, draft: Draft) -> TokenTree:
    token_ids = np.concatenate([[current], draft.tokens]).astype(np.int64)
    parents = np.concatenate([[-1], draft.parents + 1]).astype(np.int32)
    return TokenTree(token_ids, parents)
