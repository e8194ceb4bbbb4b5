"""The drafters at work together: their paths merge into one tree, and the budget cuts it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from engine.config import Lookahead
from engine.decoding.acceptance import AcceptanceTables
from engine.decoding.budget import Budget
from engine.decoding.constraint import Constraint
from engine.decoding.decoder import VerifiedStep
from engine.decoding.pool import NgramPool
from engine.decoding.recycler import Recycler
from engine.decoding.tree import Draft, DraftTree
from engine.decoding.window import JacobiWindow
from engine.model.causal_lm import MAX_ROWS

MAX_NODES = MAX_ROWS - 1
_CONTEXT = 32  # tokens that a match can be compared over
_RECYCLED = 8  # nodes that the recycler may offer


@dataclass(slots=True)
class LookaheadDrafter:
    """Drafts for one completion from all that the engine knows.

    `first_draft` is the text lookup of the first step, where the cursor may stand inside a token.
    """

    lookahead: Lookahead
    pool: NgramPool
    tables: AcceptanceTables
    recycler: Recycler
    window: JacobiWindow | None
    budget: Budget
    first_draft: Callable[[], Draft] | None = None

    def draft(self, context: Sequence[int], constraint: Constraint, depth: int) -> Draft:
        """Merge what the drafters offer, keep what may stand, cut it to the budget."""
        limits = _limits(self.lookahead)
        tree = DraftTree(4 * MAX_NODES)
        if self.first_draft is not None:
            tree.add(self.first_draft())
            self.first_draft = None
        tail = np.array(context[-_CONTEXT:], np.int32)
        tree.add(prune(self.pool.draft(tail, MAX_NODES), limits))
        if self.lookahead.mode == "auto":
            tree.add(self.recycler.draft(context[-1], _RECYCLED))
        elif self.window is not None:
            tree.add(self.window.draft(MAX_NODES))
        best = allowed_part(tree.best(MAX_NODES), constraint, depth)
        if self.lookahead.mode == "fixed":
            return cut(best, min(self.lookahead.draft_len, MAX_NODES))
        return cut(best, self.budget.affordable(best.probs))

    def learn(self, step: VerifiedStep) -> None:
        """Feed every drafter and the tables with the verified step."""
        rows = step.tree.num_rows
        self.tables.learn(step.draft, step.accepted)
        self.budget.cost.observe(rows, step.ms)
        self.budget.observe(rows, len(step.verdict.token_ids))
        top = torch.topk(step.logits, self.recycler.width, dim=-1).indices
        self.recycler.update(step.tree.token_ids, top.numpy())
        if self.window is not None:
            grams = self.window.update(step.draft, step.chosen, step.verdict.num_accepted)
            for gram in grams:
                self.pool.add(gram)
        self.pool.extend(step.verdict.token_ids)


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds that N and G put on retrieved paths."""

    depth: int = MAX_NODES
    branches: int = MAX_NODES


def _limits(lookahead: Lookahead) -> Limits:
    if lookahead.mode == "auto":
        return Limits()
    return Limits(depth=lookahead.ngram_size - 1, branches=lookahead.guess_size)


def prune(draft: Draft, limits: Limits) -> Draft:
    """Keep `limits.branches` children of the root, and below them `limits.depth` tokens."""
    depths = np.zeros(len(draft.tokens), np.int32)
    kept = np.zeros(len(draft.tokens), bool)
    branches = 0
    for node, parent in enumerate(draft.parents):
        if parent < 0:
            depths[node] = 1
            branches += 1
            kept[node] = branches <= limits.branches
        else:
            depths[node] = depths[parent] + 1
            kept[node] = kept[parent]
    return select(draft, kept & (depths <= limits.depth))


def allowed_part(draft: Draft, constraint: Constraint, depth: int) -> Draft:
    """Keep the nodes that the constraint allows, at most `depth` tokens deep."""
    states: list[Constraint | None] = []
    depths: list[int] = []
    for token, parent in zip(draft.tokens.tolist(), draft.parents.tolist(), strict=True):
        state = constraint if parent < 0 else states[parent]
        depths.append(1 if parent < 0 else depths[parent] + 1)
        fits = state is not None and depths[-1] <= depth and state.allows(token)
        states.append(state.after(token) if fits and state is not None else None)
    return select(draft, np.array([state is not None for state in states], bool))


def select(draft: Draft, kept: np.ndarray) -> Draft:
    """Keep the nodes of the bool mask; a kept node's parent is kept."""
    if kept.all():
        return draft
    places = np.append(np.cumsum(kept) - 1, -1).astype(np.int32)
    parts = [column[kept] for column in draft]
    parts[1] = places[parts[1]]
    return Draft(*parts)


def cut(draft: Draft, nodes: int) -> Draft:
    """Keep the `nodes` best nodes."""
    return Draft(*(column[:nodes] for column in draft))
