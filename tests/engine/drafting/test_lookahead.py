"""Drafts are bounded by W, N and G, by the constraint and by the budget, and stay trees."""

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from engine.config import Lookahead
from engine.drafting.acceptance import AcceptanceTable, AcceptanceTables
from engine.drafting.budget import Budget, StepCost
from engine.drafting.lookahead import (
    LookaheadDrafter,
    allowed_part,
    prune,
)
from engine.drafting.pool import NgramPool
from engine.drafting.recycler import RECYCLER_PRIOR, Recycler
from engine.drafting.tree import Draft, Source, cut, select
from engine.drafting.window import WINDOW_PRIOR
from engine.model.constraint import Constraint

TRIE: Any = None  # nothing is looked up


class EvenOnly(Constraint):
    """Lets even tokens pass."""

    def allows(self, token_id):
        return token_id % 2 == 0

    def after(self, token_id):
        return self


@st.composite
def drafts(draw) -> Draft:
    nodes = draw(st.integers(0, 30))
    parents = [draw(st.integers(-1, node - 1)) for node in range(nodes)]
    tokens = draw(st.lists(st.integers(0, 9), min_size=nodes, max_size=nodes))
    return make(tokens, parents)


def make(tokens, parents) -> Draft:
    nodes = len(tokens)
    return Draft(
        np.array(tokens, np.int32),
        np.array(parents, np.int32),
        np.linspace(0.9, 0.1, nodes),
        np.ones(nodes, np.uint8),
        np.arange(nodes, dtype=np.int32),
    )


def paths(draft: Draft) -> list[tuple[int, ...]]:
    """Tokens from the root to each node."""
    found: list[tuple[int, ...]] = []
    for token, parent in zip(draft.tokens.tolist(), draft.parents.tolist(), strict=True):
        assert -1 <= parent < len(found), "a parent comes before its child"
        found.append((*(found[parent] if parent >= 0 else ()), token))
    return found


@given(drafts())
def test_keeps_exactly_the_paths_that_the_constraint_allows(draft):
    allowed = [path for path in paths(draft) if not any(t % 2 for t in path)]
    assert paths(allowed_part(draft, EvenOnly(b"", TRIE))) == allowed


@given(drafts(), st.integers(1, 4), st.integers(1, 4))
def test_n_bounds_the_depth_and_g_the_branches_and_their_product_the_nodes(draft, depth, branches):
    pruned = prune(draft, depth, branches)
    assert all(len(path) <= depth for path in paths(pruned))
    assert np.count_nonzero(pruned.parents < 0) <= branches
    assert len(pruned.tokens) <= depth * branches


@given(drafts(), st.integers(0, 40))
def test_every_cut_is_a_tree(draft, nodes):
    assert paths(cut(draft, nodes)) == paths(draft)[:nodes]


def test_dropping_a_node_moves_the_places_of_its_followers():
    draft = make([1, 2, 3, 4], [-1, -1, 1, 2])
    kept = select(draft, np.array([False, True, True, True]))
    assert kept.tokens.tolist() == [2, 3, 4]
    assert kept.parents.tolist() == [-1, 0, 1]
    assert kept.cells.tolist() == [1, 2, 3]


def test_a_window_opens_only_where_w_n_and_g_ask_for_it():
    priors = {"window": WINDOW_PRIOR, "recycler": RECYCLER_PRIOR}
    pool = NgramPool(1000, 50)
    tables = AcceptanceTables({name: AcceptanceTable(prior) for name, prior in priors.items()})
    learned = pool, Recycler(50), tables, Budget(StepCost({1: 1.0, 128: 1.0}))  # rows are free
    pool.add([5, 6, 7, 5], Source.EDITED_FILE)

    def sources(lookahead):
        drafter = LookaheadDrafter(Lookahead.parse(lookahead), *learned, [5, 6, 7, 5])
        return set(drafter.draft([5, 6, 7, 5], None, 20).sources.tolist())

    assert sources("auto") == {Source.EDITED_FILE}
    assert sources("4,3,4") == {Source.EDITED_FILE, Source.WINDOW}
