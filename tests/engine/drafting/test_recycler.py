"""The recycler drafts what rows have left behind, likeliest first."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from engine.drafting.recycler import RECYCLER_PRIOR, RECYCLER_WIDTH, Recycler
from engine.drafting.tree import Source


def tops(*firsts: int) -> np.ndarray:
    """Rows of top tokens that begin with `firsts`."""
    return np.array([[first + rank for rank in range(RECYCLER_WIDTH)] for first in firsts])


def test_an_unknown_token_drafts_nothing():
    assert len(Recycler(100).draft(5, 8).tokens) == 0


def test_the_top_tokens_of_a_row_follow_its_token():
    recycler = Recycler(100)
    recycler.update(np.array([5]), tops(20))
    draft = recycler.draft(5, 3)
    assert draft.tokens.tolist() == [20, 21, 22]
    assert draft.parents.tolist() == [-1, -1, -1]
    assert set(draft.sources.tolist()) == {Source.RECYCLER}


def test_a_likely_path_goes_before_an_unlikely_sibling():
    recycler = Recycler(100)
    recycler.update(np.array([5, 20, 30]), tops(20, 30, 40))
    draft = recycler.draft(5, 5)
    assert draft.tokens.tolist() == [20, 30, 21, 22, 40]  # .4, .16, .14, .07, .064
    assert draft.parents.tolist() == [-1, 0, -1, -1, 1]


def test_of_rows_with_one_token_the_first_counts():
    recycler = Recycler(100)
    recycler.update(np.array([5, 6, 5]), tops(20, 30, 40))
    assert recycler.draft(5, 1).tokens.tolist() == [20]


def test_what_the_table_learns_changes_the_order():
    probs = RECYCLER_PRIOR.copy()
    recycler = Recycler(100, probs)
    recycler.update(np.array([5]), tops(20))
    probs[1] = 0.9
    draft = recycler.draft(5, 2)
    assert draft.tokens.tolist() == [21, 20]
    assert draft.cells.tolist() == [1, 0]


@given(
    rows=st.lists(
        st.tuples(st.integers(0, 19), st.permutations(range(20))), min_size=1, max_size=30
    ),
    nodes=st.integers(0, 40),
)
def test_every_prefix_of_a_draft_is_a_tree_of_distinct_siblings(rows, nodes):
    recycler = Recycler(20)
    recycler.update(
        np.array([row[0] for row in rows]), np.array([row[1][:RECYCLER_WIDTH] for row in rows])
    )
    draft = recycler.draft(rows[0][0], nodes)
    assert min(nodes, RECYCLER_WIDTH) <= len(draft.tokens) <= nodes
    assert np.all(draft.parents < np.arange(len(draft.tokens)))
    assert np.all(np.diff(draft.probs) <= 0)
    children = list(zip(draft.parents.tolist(), draft.tokens.tolist(), strict=True))
    assert len(set(children)) == len(children)
