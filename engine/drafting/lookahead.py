"""All drafters as one: their paths merge into one tree, and the budget cuts it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engine.config import Lookahead
from engine.drafting.acceptance import AcceptanceTables
from engine.drafting.budget import Budget
from engine.drafting.drafter import Drafter, VerifiedStep
from engine.drafting.pool import NgramPool
from engine.drafting.recycler import Recycler
from engine.drafting.tree import EMPTY_DRAFT, Draft, DraftTree, Source, select
from engine.drafting.window import JacobiWindow
from engine.model.constraint import Constraint
from engine.model.token_tree import MAX_ROWS, depths_of

MAX_NODES = MAX_ROWS - 1
_CONTEXT = 64  # last tokens of the text, which the pool looks up
_OFFERED_NODES = 64  # nodes of the pool's draft, before the budget cuts it
_RECYCLED_NODES = 8
_GRAM_TOKENS = 8192  # tokens of the n-grams that the window finds in one completion


@dataclass(frozen=True, slots=True)
class LearnedState:
    """The parts that drafts read and steps update; they outlive a completion."""

    pool: NgramPool
    recycler: Recycler
    tables: AcceptanceTables
    budget: Budget


class LookaheadDrafter(Drafter):
    """The drafter of one completion, which begins where the pool's newest document ends.

    `first_draft` is the first step's text lookup, as the cursor may stand inside a token.
    """

    def __init__(
        self,
        lookahead: Lookahead,
        learned: LearnedState,
        context: Sequence[int],
        first_draft: Draft = EMPTY_DRAFT,
    ) -> None:
        self._lookahead = lookahead
        self._learned = learned
        self._first_draft = first_draft
        self._window = _window(lookahead, learned, context)
        if self._window is not None:
            self._grams = NgramPool(_GRAM_TOKENS, learned.recycler.vocab_size)

    def draft(self, context: Sequence[int], constraint: Constraint | None, depth: int) -> Draft:
        """Merge the drafts, keep the allowed nodes, and cut them to the budget."""
        tree = DraftTree(2 * MAX_NODES)
        tree.add(self._pruned(self._first_draft))
        self._first_draft = EMPTY_DRAFT
        tree.add(self._pruned(self._learned.pool.draft(context[-_CONTEXT:], _OFFERED_NODES)))
        if self._lookahead.mode == "auto":
            tree.add(self._learned.recycler.draft(context[-1], _RECYCLED_NODES))
        if self._window is not None:
            tree.add(self._pruned(self._grams.draft(context[-_CONTEXT:], _OFFERED_NODES)))
            tree.add(self._window.draft(MAX_NODES))
        offered = allowed_part(tree.best(MAX_NODES), constraint, depth)
        return cut(offered, self._affordable(offered))

    def update(self, step: VerifiedStep) -> None:
        """Update the drafters with a verified step."""
        learned, output = self._learned, step.output
        learned.recycler.update(step.tree.token_ids, output.top_tokens())
        if self._window is not None:
            for gram in self._window.update(step.draft, output.chosen, len(output.path) - 1):
                if len(self._grams) + len(gram) < _GRAM_TOKENS:
                    self._grams.add(gram, Source.GENERATED)
        learned.pool.extend(step.token_ids)

    def calibrate(self, step: VerifiedStep) -> None:
        """Update the tables and the budget with a verified step."""
        learned, output = self._learned, step.output
        learned.tables.update(step.draft, step.accepted)
        learned.budget.cost.observe(output.step_rows, output.ms)
        learned.budget.observe(output.step_rows, len(output.path))

    def _pruned(self, draft: Draft) -> Draft:
        if self._lookahead.mode == "auto":
            return draft
        return prune(draft, self._lookahead.ngram_size - 1, self._lookahead.guess_size)

    def _affordable(self, draft: Draft) -> int:
        budget = self._learned.budget
        if self._lookahead.mode == "fixed":
            return min(self._lookahead.draft_len, budget.most_nodes)
        return budget.affordable(draft.probs)


def _window(
    lookahead: Lookahead, learned: LearnedState, context: Sequence[int]
) -> JacobiWindow | None:
    """Return the window for W and N; None in `auto`.

    Beside the pool and the recycler, 4 to 12 columns won under 1 % more tokens a step, even with
    free rows, and took the CPU 0.15 ms.
    """
    if lookahead.mode != "fixed":
        return None
    probs = learned.tables["window"].probs
    return JacobiWindow(lookahead.window_size, lookahead.ngram_size, context, probs)


def prune(draft: Draft, depth: int, branches: int) -> Draft:
    """Keep `branches` children of the root with their subtrees, `depth` tokens deep.

    A bound on all nodes leaves the window its share of the draft.
    """
    if len(draft.tokens) <= min(branches, depth):
        return draft
    kept = np.zeros(len(draft.tokens), bool)
    num_branches = 0
    for node, parent in enumerate(draft.parents):
        num_branches += parent < 0
        kept[node] = num_branches <= branches if parent < 0 else kept[parent]
    near = select(draft, kept & (depths_of(draft.parents) < depth))
    return cut(near, min(MAX_NODES, depth * branches))


def allowed_part(draft: Draft, constraint: Constraint | None, depth: int) -> Draft:
    """Keep the nodes that the constraint allows, at most `depth` tokens deep."""
    is_near = depths_of(draft.parents) < depth
    if constraint is None:
        return select(draft, is_near)
    states: list[Constraint | None] = []  # behind each node
    is_allowed = np.ones(len(draft.tokens), bool)
    nodes = zip(draft.tokens.tolist(), draft.parents.tolist(), strict=True)
    for node, (token, parent) in enumerate(nodes):
        state = constraint if parent < 0 else states[parent]
        is_allowed[node] = (parent < 0 or is_allowed[parent]) and (not state or state.allows(token))
        states.append(state.after(token) if state and is_allowed[node] else None)
    return select(draft, is_allowed & is_near)


def cut(draft: Draft, nodes: int) -> Draft:
    """Keep the `nodes` best nodes."""
    return Draft(*(column[:nodes] for column in draft))
