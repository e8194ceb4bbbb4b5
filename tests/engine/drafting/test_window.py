"""The Jacobi window against models that are functions of the tokens before."""

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.drafting.tree import Draft, DraftTree, Source
from engine.drafting.window import JacobiWindow
from tests.support.drafts import path_draft

Model = Callable[[Sequence[int]], int]


def choices(model: Model, context: Sequence[int], draft: Draft) -> np.ndarray:
    """What the model chooses behind the root and behind each node."""
    paths = [list(context)]
    for token, parent in zip(draft.tokens.tolist(), draft.parents.tolist(), strict=True):
        paths.append([*paths[parent + 1], token])
    return np.array([model(path) for path in paths])


def accepted(draft: Draft, chosen: np.ndarray) -> list[int]:
    """The rows of the path that the model agrees to, without the root."""
    rows = [0]
    for row, (token, parent) in enumerate(zip(draft.tokens, draft.parents, strict=True), 1):
        if parent + 1 == rows[-1] and token == chosen[rows[-1]]:
            rows.append(row)
    return rows[1:]


def run(model: Model, context: list[int], size: int, ngram_size: int, num_steps: int):
    """Decode with the window alone. Returns the text, tokens per step, and all n-grams."""
    window = JacobiWindow(size, ngram_size, context)
    text = list(context)
    lengths, grams = [], []
    for _ in range(num_steps):
        draft = window.draft(127)
        chosen = choices(model, text, draft)
        path = accepted(draft, chosen)
        text += [int(chosen[row]) for row in [0, *path]]
        lengths.append(len(path) + 1)
        grams += [gram.tolist() for gram in window.update(draft, chosen, len(path))]
    return text[len(context) :], lengths, grams


def counting(path: Sequence[int]) -> int:
    """A model whose next token depends on the last one only: Jacobi guesses come true at once."""
    return (path[-1] + 1) % 1000


def cycling(path: Sequence[int]) -> int:
    """A model that goes round in 12 tokens."""
    return (path[-1] + 1) % 12


def hashing(path: Sequence[int]) -> int:
    """A model that depends on the last three tokens."""
    return (7 * path[-1] + 11 * path[-2] + 13 * path[-3]) % 23


@pytest.mark.parametrize("sizes", [(1, 2), (2, 2), (4, 3), (1, 8), (8, 8), (15, 15), (3, 1)])
def test_a_step_drafts_at_most_the_window_of_the_formula(sizes):
    size, ngram_size = sizes
    window = JacobiWindow(size, ngram_size, [1, 2, 3])
    text = [1, 2, 3]
    for _ in range(3 * ngram_size):
        draft = window.draft(1000)
        assert len(draft.tokens) <= max(0, size * (ngram_size - 1) - 1)
        chosen = choices(hashing, text, draft)
        window.update(draft, chosen, 0)
        text.append(int(chosen[0]))


def test_n_grams_end_with_what_the_model_says():
    """Behind the current token's column, whose first token was corrected, they are true runs."""
    text, _, grams = run(counting, [5, 900, 17, 3], 4, 5, 20)
    assert len(grams) > 20
    for gram in grams:
        assert len(gram) == 5
        assert counting(gram[-2:-1]) == gram[-1]
        if gram[0] not in text:
            assert [counting([token]) for token in gram[:-1]] == gram[1:]


def test_the_n_grams_it_finds_make_steps_longer():
    """Looked up by the current token, they are what lookahead decoding lives on."""
    text, window = [0, 4, 9], JacobiWindow(4, 5, [0, 4, 9])
    known: dict[int, list[int]] = {}
    for _ in range(30):
        tree = DraftTree(100)
        tree.add(window.draft(50))
        guess = known.get(text[-1], [])
        tree.add(path_draft(guess, [0.9] * len(guess), Source.GENERATED, [0] * len(guess)))
        draft = tree.best(100)
        chosen = choices(cycling, text, draft)
        path = accepted(draft, chosen)
        text += [int(chosen[row]) for row in [0, *path]]
        known |= {
            int(gram[0]): gram[1:].tolist() for gram in window.update(draft, chosen, len(path))
        }
    assert len(text) > 3 + 60


def test_the_window_moves_on_by_what_a_step_wrote():
    window = JacobiWindow(4, 3, [10, 11, 12])
    draft = window.draft(100)
    first_spine = int(draft.tokens[np.argmin(draft.parents)])
    for written in (1, 1):
        draft = window.draft(100)
        chosen = np.arange(100, 101 + len(draft.tokens))
        window.update(draft, chosen, written - 1)
    assert first_spine in (10, 11, 12)
    assert not set(window.draft(100).tokens.tolist()) >= {10, 11, 12}


def test_nodes_that_were_not_verified_do_not_break_the_window():
    window = JacobiWindow(4, 4, [1, 2, 3])
    for nodes in (3, 0, 5, 1, 2):
        draft = window.draft(nodes)
        assert len(draft.tokens) <= nodes
        chosen = np.arange(50, 51 + len(draft.tokens))
        window.update(draft, chosen, 0)


def test_an_n_of_one_drafts_and_finds_nothing():
    window = JacobiWindow(1, 1, [1])
    draft = window.draft(10)
    assert len(draft.tokens) == 0
    assert window.update(draft, np.array([7]), 0) == []


@given(
    size=st.integers(1, 8),
    ngram_size=st.integers(2, 8),
    context=st.lists(st.integers(0, 22), min_size=3, max_size=12),
)
@settings(max_examples=60, deadline=None)
def test_whatever_is_drafted_the_text_is_the_models_and_runs_repeat(size, ngram_size, context):
    text, lengths, grams = run(hashing, context, size, ngram_size, 15)
    plain = list(context)
    for _ in text:
        plain.append(hashing(plain))
    assert text == plain[len(context) :]
    assert all(len(gram) == ngram_size for gram in grams)
    assert run(hashing, context, size, ngram_size, 15) == (text, lengths, grams)


@given(nodes=st.integers(0, 60), size=st.integers(1, 8), ngram_size=st.integers(2, 6))
def test_every_draft_is_a_tree_best_first(nodes, size, ngram_size):
    draft = JacobiWindow(size, ngram_size, [4, 5, 6, 7]).draft(nodes)
    assert len(draft.tokens) <= nodes
    assert np.all(draft.parents < np.arange(len(draft.tokens)))
    assert np.all(np.diff(draft.probs) <= 0)
    assert set(draft.sources.tolist()) <= {Source.WINDOW}
