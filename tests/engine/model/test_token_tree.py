"""Verification walks the path that the model itself would have written."""

import numpy as np

from engine.model.token_tree import verify


def check(token_ids, parents, chosen):
    """The rows that agree, and what they chose."""
    path = verify(np.array(token_ids), np.array(parents, np.int32), np.array(chosen))
    return path.tolist(), np.array(chosen)[path].tolist()


def test_plain_decoding_writes_the_one_choice():
    assert check([5], [-1], [9]) == ([0], [9])


def test_accepts_the_longest_agreeing_path_and_adds_the_bonus_token():
    assert check([5, 7, 8, 9], [-1, 0, 1, 2], [7, 8, 9, 4]) == ([0, 1, 2, 3], [7, 8, 9, 4])


def test_descends_into_the_sibling_that_agrees():
    assert check([5, 6, 7, 1, 2], [-1, 0, 0, 1, 2], [7, 1, 2, 0, 3]) == ([0, 2, 4], [7, 2, 3])


def test_an_agreeing_token_below_a_refused_one_is_no_evidence():
    assert check([5, 6, 8], [-1, 0, 1], [7, 8, 1]) == ([0], [7])


def test_a_node_may_come_long_after_its_parent():
    assert check([5, 6, 3, 4, 8], [-1, 0, 0, 2, 1], [6, 8, 0, 0, 2])[0] == [0, 1, 4]
