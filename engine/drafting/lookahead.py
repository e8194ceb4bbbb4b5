"""All drafters as one: their paths merge into one tree, and the budget cuts it."""

from collections.abc import Sequence
from dataclasses import InitVar, dataclass, field

import numpy as np

from engine.config import Lookahead
from engine.drafting.acceptance import AcceptanceTables
from engine.drafting.block_copy import BlockCopy
from engine.drafting.budget import Budget
from engine.drafting.drafter import Drafter, VerifiedStep
from engine.drafting.line_starts import LineStarts
from engine.drafting.pool import NgramPool
from engine.drafting.recycler import Recycler
from engine.drafting.tree import EMPTY_DRAFT, Draft, DraftTree, Source, cut, select
from engine.drafting.window import JacobiWindow
from engine.model.constraint import Constraint
from engine.model.token_tree import MAX_ROWS, depths_of

MAX_NODES = MAX_ROWS - 1  # the other row is the last token, which is no draft
_OFFERED_NODES = 64  # before the budget; a prototype had 3.39 tokens a step with 64, 3.18 with 32
_RECYCLED_NODES = 8  # as many as the recycler's table holds after one token
_GRAM_TOKENS = 8192  # tokens of the n-grams that the window finds in one completion


@dataclass(slots=True, eq=False)
class LookaheadDrafter(Drafter):
    """The drafter of one completion, which begins where the pool's newest document ends."""

    lookahead: Lookahead
    pool: NgramPool
    recycler: Recycler
    tables: AcceptanceTables
    budget: Budget
    context: InitVar[Sequence[int]]  # that the window begins with
    first_draft: Draft = EMPTY_DRAFT  # a text lookup, as the cursor may stand inside a token
    copy: BlockCopy | None = None  # of the text that the answer rewrites
    lines: LineStarts | None = None
    _window: JacobiWindow | None = None
    _grams: NgramPool = field(init=False)  # found by the window
    _tree: DraftTree = field(init=False)  # of one step; a new one each time would take longer

    def __post_init__(self, context: Sequence[int]) -> None:
        """Make no window in `auto`: 4 to 12 columns won under 1 % more tokens, and took 0.15 ms."""
        self._tree = DraftTree(2 * MAX_NODES)
        ahead, probs = self.lookahead, self.tables["window"].probs
        if ahead.mode == "fixed":
            self._window = JacobiWindow(ahead.window_size, ahead.ngram_size, context, probs)
            self._grams = NgramPool(_GRAM_TOKENS, self.recycler.vocab_size)

    def draft(self, context: Sequence[int], constraint: Constraint | None, depth: int) -> Draft:
        """Merge the drafts, keep the allowed nodes, and cut them to the budget."""
        tree = self._tree
        tree.clear()
        tree.add(self._pruned(self.first_draft))
        self.first_draft = EMPTY_DRAFT
        if self.copy is not None:
            for path in self.copy.drafts(MAX_NODES):
                tree.add(self._pruned(path))
        drafted = self.pool.draft(context, _OFFERED_NODES, depth)
        tree.add(self._pruned(drafted))
        if self._window is None:
            tree.add(self.recycler.draft(context[-1], _RECYCLED_NODES))
            if self.lines is not None:
                is_full = len(drafted.tokens) == _OFFERED_NODES
                self.lines.add_to(tree, drafted.probs[-1] if is_full else 0.0)
        else:
            tree.add(self._pruned(self._grams.draft(context, _OFFERED_NODES, depth)))
            tree.add(self._window.draft(MAX_NODES))
        most = self.budget.most_nodes if constraint is None else MAX_NODES
        offered = allowed_part(tree.best(most, depth), constraint)
        if self._window is None:
            return cut(offered, self.budget.affordable(offered.probs))
        return cut(offered, min(self.lookahead.draft_len, self.budget.most_nodes))

    def update(self, step: VerifiedStep) -> None:
        """Update the drafters with a verified step."""
        output = step.output
        self.recycler.update(step.tree.token_ids, output.top_tokens())
        if self._window is not None:
            for gram in self._window.update(step.draft, output.chosen, len(output.path) - 1):
                if len(self._grams) + len(gram) < _GRAM_TOKENS:
                    self._grams.add(gram, Source.GENERATED)
        if self.copy is not None:
            self.copy.update(step.token_ids.tolist())
        if self.lines is not None:
            self.lines.extend(step.token_ids)
        self.pool.extend(step.token_ids)

    def calibrate(self, step: VerifiedStep) -> None:
        """Update the tables and the budget with a verified step."""
        output = step.output
        self.tables.update(step.draft, step.accepted)
        self.budget.cost.observe(output.step_rows, output.ms)
        self.budget.observe(output.step_rows, len(output.path))

    def _pruned(self, draft: Draft) -> Draft:
        if self._window is None:
            return draft
        return prune(draft, self.lookahead.ngram_size - 1, self.lookahead.guess_size)


def prune(draft: Draft, depth: int, branches: int) -> Draft:
    """Keep `branches` subtrees of the root, `depth` tokens deep, and leave the window its share."""
    if len(draft.tokens) <= min(branches, depth):
        return draft
    kept = np.zeros(len(draft.tokens), bool)
    num_branches = 0
    for node, parent in enumerate(draft.parents):
        num_branches += parent < 0
        kept[node] = num_branches <= branches if parent < 0 else kept[parent]
    near = select(draft, kept & (depths_of(draft.parents) < depth))
    return cut(near, min(MAX_NODES, depth * branches))


def allowed_part(draft: Draft, constraint: Constraint | None) -> Draft:
    """Keep the nodes that the constraint allows."""
    if constraint is None:
        return draft
    states: list[Constraint | None] = []  # behind each node
    is_allowed = np.ones(len(draft.tokens), bool)
    nodes = zip(draft.tokens.tolist(), draft.parents.tolist(), strict=True)
    for node, (token, parent) in enumerate(nodes):
        state = constraint if parent < 0 else states[parent]
        is_allowed[node] = (parent < 0 or is_allowed[parent]) and (not state or state.allows(token))
        states.append(state.after(token) if state and is_allowed[node] else None)
    return select(draft, is_allowed)
