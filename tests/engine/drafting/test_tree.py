import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from engine.drafting.tree import EMPTY_DRAFT, Draft, DraftTree, Source
from tests.support.drafts import path_draft

# A node hangs below the root or an earlier node, and is at most as likely as its parent.
shapes = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 20), st.floats(0.01, 1)), max_size=20)


def draft_of(shape):
    """A draft whose siblings may be equal: the tree merges them."""
    probs: list[float] = []
    parents: list[int] = []
    for number, (_, below, share) in enumerate(shape):
        parents.append(below % (number + 1) - 1)
        probs.append(share * (probs[parents[-1]] if parents[-1] >= 0 else 1.0))
    tokens = np.array([token for token, _, _ in shape], np.int32)
    sources = np.full(len(shape), Source.WINDOW, np.uint8)
    cells = np.arange(len(shape), dtype=np.int32)
    return Draft(tokens, np.array(parents, np.int32), np.array(probs), sources, cells)


def by_path(draft):
    """The greatest probability of each path: the tree as a dictionary."""
    paths: list[tuple[int, ...]] = []
    best: dict[tuple[int, ...], float] = {}
    for token, parent, prob in zip(*(c.tolist() for c in draft[:3]), strict=True):
        paths.append((*(paths[parent] if parent >= 0 else ()), token))
        best[paths[-1]] = max(best.get(paths[-1], 0.0), prob)
    return best


@given(st.lists(shapes, max_size=3), st.integers(1, 40), st.integers(0, 6), shapes)
def test_the_best_nodes_of_all_drafts_come_out_best_first(shapes, nodes, depth, former):
    tree = DraftTree(1000)
    tree.add(draft_of(former))
    tree.clear()
    expected: dict[tuple[int, ...], float] = {}
    for shape in shapes:
        tree.add(draft_of(shape))
        for path, prob in by_path(draft_of(shape)).items():
            expected[path] = max(expected.get(path, 0.0), prob)
    assert len(tree.best(1000).tokens) == len(expected)
    expected = {path: prob for path, prob in expected.items() if len(path) <= depth}
    best = tree.best(nodes, depth)
    assert np.all(best.parents < np.arange(len(best.tokens)))
    assert best.probs.tolist() == sorted(expected.values(), reverse=True)[:nodes]
    assert all(expected[path] == prob for path, prob in by_path(best).items())


def test_a_merged_node_belongs_to_the_drafter_that_is_surer():
    tree = DraftTree(10)
    tree.add(path_draft([5, 6], [0.5, 0.2], Source.SUFFIX, [1, 2]))
    tree.add(path_draft([5, 6], [0.4, 0.3], Source.RECYCLER, [3, 4]))
    best = tree.best(10)
    assert best.tokens.tolist() == [5, 6]
    assert best.sources.tolist() == [Source.SUFFIX, Source.RECYCLER]
    assert best.cells.tolist() == [1, 4]


def test_nodes_beyond_the_limit_are_ignored_with_all_below_them():
    tree = DraftTree(2)
    tree.add(path_draft([1, 2, 3], [0.9, 0.8, 0.7], Source.SUFFIX, [0, 0, 0]))
    tree.add(draft_of([(7, 0, 1.0), (8, 1, 1.0)]))
    assert tree.best(10).tokens.tolist() == [1, 2]


def test_an_empty_tree_gives_an_empty_draft():
    assert DraftTree(5).best(3) is EMPTY_DRAFT
