"""The lookahead decoder: draft, verify, accept. It knows token ids, no text.

Its tokens are those of plain decoding (`Drafter`). A row's logits do not depend on other rows,
noise is keyed by position, and a drafted token stands only if the row before it chose the same one.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from engine.config import Sampling
from engine.drafting.drafter import Drafter, VerifiedStep
from engine.drafting.tree import Draft
from engine.model.causal_lm import CacheSlot, StepInput, StepOutput
from engine.model.constraint import Constraint
from engine.model.token_tree import MAX_ROWS, TokenTree


@dataclass(slots=True, eq=False)
class Decoder:
    """Decoding of one sequence, whose slot holds the prompt without its last token."""

    slot: CacheSlot
    drafter: Drafter
    sampling: Sampling
    constraint: Constraint | None
    current: int  # the last token, at first the prompt's; it has no keys and values yet
    context: list[int]  # that drafts continue: the file up to the cursor, then written tokens
    max_tokens: int
    on_step: Callable[[VerifiedStep], bool]  # called during the next step; true ends the text
    is_done: bool = False
    written_ids: list[int] = field(default_factory=list, init=False)  # by all steps so far
    _draft: Draft | None = field(default=None, init=False)  # of the step under way
    _step: StepInput | None = field(default=None, init=False)
    _constraints: Sequence[Constraint | None] = field(default=(), init=False)  # by row of the step
    _verified: VerifiedStep | None = field(default=None, init=False)  # not yet passed to `on_step`

    def next_step(self) -> StepInput | None:
        """Draft the next step; None once `max_tokens` are written or the slot is full."""
        end = self.slot.capacity - MAX_ROWS  # the rows of any step fit, drafted or not
        room = min(self.max_tokens, end - self.slot.length)
        if room <= 0:
            return None
        self._draft = self.drafter.draft(self.context, self.constraint, room - 1)
        token_ids = np.append(np.int64(self.current), self._draft.tokens)
        tree = TokenTree(token_ids, np.append(np.int32(-1), self._draft.parents + 1))
        self._constraints = self._constraints_of(tree)
        allowed = None
        if self.constraint is not None:
            allowed = [one.allowed_ids if one else None for one in self._constraints]
        self._step = StepInput(self.slot, tree, self.sampling, allowed)
        return self._step

    def settle(self) -> None:
        """Learn from the last step while the next one runs; drop the latter if the text ends."""
        verified, self._verified = self._verified, None
        if verified is not None:
            self.drafter.calibrate(verified)
            self.is_done = self.on_step(verified)
        if self._step is None:
            self.is_done = True
        elif self.is_done:
            self._step.is_dropped = True

    def take(self, output: StepOutput | None) -> None:
        """Commit the accepted path; `output` is None for a dropped step."""
        if output is None or self._step is None or self._draft is None:
            return
        self.slot.commit(output.path.tolist())
        self._verified = VerifiedStep(self._step.tree, self._draft, output)
        token_ids = self._verified.token_ids.tolist()
        constraint = self._constraints[output.path[-1]]
        self.constraint = constraint.after(token_ids[-1]) if constraint else None
        self.current = token_ids[-1]
        self.context += token_ids
        self.written_ids += token_ids
        self.max_tokens -= len(token_ids)
        self.drafter.update(self._verified)
        self._step = self._draft = None

    def _constraints_of(self, tree: TokenTree) -> Sequence[Constraint | None]:
        constraints = [self.constraint]
        if self.constraint is None:
            return constraints * tree.num_rows
        for token, parent in zip(tree.token_ids[1:], tree.parents[1:], strict=True):
            constraint = constraints[parent]
            constraints.append(constraint.after(int(token)) if constraint else None)
        return constraints
