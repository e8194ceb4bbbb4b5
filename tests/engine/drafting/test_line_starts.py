from itertools import accumulate

import numpy as np
import pytest

from engine.drafting.line_starts import LineStarts, line_kinds
from engine.drafting.tree import Draft, DraftTree, Source

# Tokens 1 and 2 end lines, 3 and 4 are blank.
KINDS = np.array([0, 1, 1, 2, 2, 0, 0, 0, 0, 0], np.uint8)


def drafted(lines, tokens=(), parents=(), prob=0.5, likelier=0.0):
    """The paths of the tree that the lines make of a draft, best first."""
    count, tree = len(tokens), DraftTree(60)
    columns = np.full(count, prob), np.zeros(count, np.uint8), np.zeros(count, np.int32)
    tree.add(Draft(np.array(tokens, np.int32), np.array(parents, np.int32), *columns))
    lines.add_to(tree, likelier)
    best = tree.best(100)
    found: list[tuple[int, ...]] = []
    for token, parent in zip(best.tokens.tolist(), best.parents.tolist(), strict=True):
        found.append((*(found[parent] if parent >= 0 else ()), token))
    return found, best


def test_after_a_line_end_stands_first_what_stood_after_the_last_one():
    lines = LineStarts(KINDS, [1, 5, 1, 6])
    assert not drafted(lines)[0]
    lines.extend(np.array([2, 7, 1]))
    assert drafted(lines)[0] == [(7,), (6,), (5,)]
    lines.extend(np.array([5, 2]))
    found, best = drafted(lines)
    assert found == [(5,), (7,), (6,)]
    assert set(best.sources.tolist()) == {Source.LINE_START}


def test_a_drafted_line_end_is_followed_by_an_indentation_and_that_by_a_word():
    found, _ = drafted(LineStarts(KINDS, [1, 3, 7, 8]), [5, 1], [-1, 0])
    assert found == [(5,), (5, 1), (5, 1, 3), (5, 1, 3, 7)]


def test_what_is_drafted_already_leaves_the_rest_less():
    lines = LineStarts(KINDS, [1, 5, 1, 6, 1])
    _, alone = drafted(lines)
    found, beside = drafted(lines, [6], [-1], prob=0.75)
    assert found == [(6,), (5,)]
    assert beside.probs[1] == pytest.approx(alone.probs[1] / 4)


def test_nothing_is_added_that_is_less_likely_than_asked():
    lines = LineStarts(KINDS, [1, 5, 1, 6, 1])
    _, all_of_it = drafted(lines)
    assert len(drafted(lines, likelier=all_of_it.probs[1])[0]) == 1


def test_a_full_tree_takes_no_more():
    lines, tree = LineStarts(KINDS, [1, 5, 1, 6, 1]), DraftTree(1)
    lines.add_to(tree, 0.0)
    assert tree.best(9).tokens.tolist() == [6]


def test_tokens_are_told_apart_by_their_text():
    texts = [b"", b"\n", b":\n", b"  ", b"\t", b" a", b"\r\n", b"a"]
    spellings = (
        np.frombuffer(b"".join(texts), np.uint8),
        np.array([0, *accumulate(map(len, texts))]),
    )
    assert line_kinds(spellings).tolist() == [0, 1, 1, 2, 2, 0, 1, 0]
