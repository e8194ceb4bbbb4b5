"""The lookahead decoder: draft, forward, verify, commit.

What it writes is, token for token, what it writes with `NoDrafts`, which is plain decoding: a row's
logits do not depend on the other rows, noise is keyed by position, and a drafted token stands only
where the row before it chose the same token.
"""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from engine.config import Sampling
from engine.drafting.tree import EMPTY_DRAFT, Draft, Source
from engine.model.constraint import Constraint, Unconstrained
from engine.model.step_order import StepOrder, Stepper
from engine.model.token_tree import MAX_ROWS, TokenTree
from engine.model.verify import Verdict


@dataclass(frozen=True, slots=True)
class Step:
    """One forward pass: the tokens it wrote and what they cost.

    `sources` names the drafter of each accepted token; the last token is always the model's own.
    `margins` are, for each token, the model's score for it less that for the next best.
    """

    token_ids: tuple[int, ...]
    margins: tuple[float, ...]
    sources: tuple[Source, ...]
    rows: int
    ms: float


@dataclass(frozen=True, slots=True)
class VerifiedStep:
    """What a drafter can learn from: the draft, which nodes agreed, what the rows said.

    `accepted` bool [nodes]; `chosen` int64 [nodes + 1]; `top_tokens` gives int64 [nodes + 1, 8].
    `margins` float32 [accepted + 1]: how far the scores of the path's tokens led.
    """

    tree: TokenTree
    draft: Draft
    accepted: np.ndarray
    chosen: np.ndarray
    top_tokens: Callable[[], np.ndarray]
    verdict: Verdict
    margins: np.ndarray
    ms: float
    step_rows: int  # that it took so long for, those of other sequences included


class Drafter(Protocol):
    """Guesses what follows. It may be wrong, never harmful."""

    def draft(self, context: Sequence[int], constraint: Constraint, depth: int) -> Draft:
        """Draft at most `depth` tokens deep below the end of `context`, all within `constraint`."""
        ...

    def hear(self, step: VerifiedStep) -> None:
        """Take what the next draft needs from a step. Called once for each."""
        ...

    def learn(self, step: VerifiedStep) -> None:
        """Take the rest, while the next step is under way. Called once for each, after `hear`."""
        ...


class NoDrafts:
    """Plain decoding."""

    def draft(self, context: Sequence[int], constraint: Constraint, depth: int) -> Draft:  # noqa: ARG002 - it looks at nothing
        """Draft nothing."""
        return EMPTY_DRAFT

    def hear(self, step: VerifiedStep) -> None:
        """Hear nothing."""

    def learn(self, step: VerifiedStep) -> None:
        """Learn nothing."""


class _Flight(NamedTuple):
    """A step that was begun. `constraints` say what each row's choice has to keep to."""

    tree: TokenTree
    draft: Draft
    constraints: Sequence[Constraint]


@dataclass(slots=True)
class Decoder:
    """One completion over one slot, which holds all of the prompt but its last token."""

    slot: Stepper
    drafter: Drafter
    sampling: Sampling
    constraint: Constraint
    cancelled: Callable[[], bool]

    def steps(self, current: int, context: Sequence[int], max_tokens: int) -> Generator[Step]:
        """Decode from `current`, the prompt's last token, until `max_tokens` or the slot is full.

        `context` are the tokens that drafts continue, as the file reads up to the cursor. Ends
        within one step after `cancelled`. A step is told once the next one is under way.
        """
        written, left = list(context), max_tokens
        flight = self._begin(current, written, left)
        try:
            while flight is not None:
                verified = self._finish(flight)
                token_ids = verified.verdict.token_ids.tolist()
                written += token_ids
                left -= len(token_ids)
                self.drafter.hear(verified)
                flight = self._begin(token_ids[-1], written, left)
                self.drafter.learn(verified)
                yield _told(verified)
        finally:
            self.slot.abandon()

    def _begin(self, current: int, written: Sequence[int], left: int) -> _Flight | None:
        """Draft and ask for the step; None where there is to be none."""
        end = self.slot.capacity - MAX_ROWS  # a step's rows fit behind every text, drafted or not
        room = end - self.slot.length
        if min(left, room) <= 0 or self.cancelled():
            return None
        draft = self.drafter.draft(written, self.constraint, min(left, room) - 1)
        tree = _tree(current, draft)
        constraints = self._constraints(tree)
        allowed = None
        if not isinstance(self.constraint, Unconstrained):
            allowed = [constraint.allowed_ids for constraint in constraints]
        self.slot.begin(StepOrder(tree, self.sampling, allowed))
        return _Flight(tree, draft, constraints)

    def _finish(self, flight: _Flight) -> VerifiedStep:
        """Wait for the step and keep the path that agrees."""
        answer = self.slot.finish()
        verdict = Verdict(answer.rows, answer.chosen[answer.rows])
        self.slot.commit(verdict.rows.tolist())
        last = flight.constraints[verdict.rows[-1]]
        self.constraint = last.after(int(verdict.token_ids[-1]))
        accepted = np.zeros(len(flight.draft.tokens), bool)
        accepted[verdict.rows[1:] - 1] = True
        return VerifiedStep(
            tree=flight.tree,
            draft=flight.draft,
            accepted=accepted,
            chosen=answer.chosen,
            top_tokens=answer.top_tokens,
            verdict=verdict,
            margins=answer.margins_of(verdict.rows),
            ms=answer.ms,
            step_rows=answer.step_rows,
        )

    def _constraints(self, tree: TokenTree) -> Sequence[Constraint]:
        constraints = [self.constraint]
        if isinstance(self.constraint, Unconstrained):
            return constraints * tree.num_rows
        for token, parent in zip(tree.token_ids[1:], tree.parents[1:], strict=True):
            constraints.append(constraints[parent].after(int(token)))
        return constraints


def _told(step: VerifiedStep) -> Step:
    sources = step.draft.sources[step.verdict.rows[1:] - 1]
    return Step(
        token_ids=tuple(step.verdict.token_ids.tolist()),
        margins=tuple(step.margins.tolist()),
        sources=tuple(map(Source, sources)),
        rows=step.tree.num_rows,
        ms=step.ms,
    )


def _tree(current: int, draft: Draft) -> TokenTree:
    rows = 1 + len(draft.tokens)
    token_ids, parents = np.empty(rows, np.int64), np.empty(rows, np.int32)
    token_ids[0], token_ids[1:] = current, draft.tokens
    parents[0], parents[1:] = -1, draft.parents
    parents[1:] += 1
    return TokenTree(token_ids, parents)
