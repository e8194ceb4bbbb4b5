"""The budget drafts what is worth its rows, on this machine, and nothing more."""

import numpy as np
import pytest

from engine.drafting.budget import Budget, StepCost

FREE = {1: 10.0, 128: 10.0}
STEEP = {1: 10.0, 2: 20.0, 128: 1280.0}


def test_rows_that_cost_nothing_are_all_taken():
    assert Budget(StepCost(FREE)).affordable(np.full(20, 0.01)) == 20


def test_rows_that_cost_a_step_each_are_not_taken():
    assert Budget(StepCost(STEEP)).affordable(np.full(20, 0.5)) == 0


def test_takes_nodes_while_they_win_more_than_they_cost():
    cost = StepCost({1: 10.0, 11: 20.0, 21: 60.0})  # a tenth of a step each, then four tenths
    probs = np.array([0.9, 0.8, 0.5, 0.3, 0.05, 0.05])
    assert Budget(cost).affordable(probs) == 4


def test_a_wider_step_never_counts_as_cheaper():
    assert np.all(np.diff(StepCost({1: 10.0, 2: 9.0, 4: 12.0, 8: 11.0}).relative) >= 0)


def test_costs_follow_what_steps_really_take():
    cost = StepCost({1: 10.0, 8: 20.0})
    for _ in range(200):
        cost.observe(8, 26.0)
    assert cost.ms(8) == pytest.approx(26.0, rel=0.05)
    assert cost.ms(1) == pytest.approx(10.0, rel=0.15)


def test_wide_steps_alone_show_that_narrow_ones_were_taken_for_too_slow():
    cost = StepCost({1: 166.0, 12: 171.0, 16: 200.0})
    for _ in range(200):
        cost.observe(8, 40.0)
    assert cost.ms(1) <= cost.ms(8) == pytest.approx(40.0, rel=0.05)


def test_one_disturbed_step_changes_little():
    cost = StepCost({1: 10.0, 8: 20.0})
    cost.observe(8, 5000.0)
    assert cost.ms(8) < 21.0


def test_the_rate_rises_where_drafts_are_accepted():
    budget = Budget(StepCost(FREE))
    for _ in range(100):
        budget.observe(step_rows=8, tokens=5)
    assert budget.rate == pytest.approx(5.0, rel=0.1)


def test_a_sweep_needs_the_one_row_step():
    with pytest.raises(ValueError, match="one row"):
        StepCost({2: 1.0})


def test_padded_rows_cost_what_their_bucket_costs():
    cost = StepCost({1: 10.0, 4: 11.0, 128: 20.0}, (1, 4, 128))
    assert [cost.ms(rows) for rows in (1, 2, 4, 5, 128)] == [10.0, 11.0, 11.0, 20.0, 20.0]


def test_a_padded_step_teaches_its_whole_bucket():
    cost = StepCost({1: 10.0, 4: 11.0, 128: 20.0}, (1, 4, 128))
    for _ in range(200):
        cost.observe(60, 30.0)
    assert cost.ms(5) == cost.ms(128) == pytest.approx(30.0, rel=0.05)
    assert cost.ms(4) == pytest.approx(11.0, rel=0.05)


@pytest.mark.parametrize(("sequences", "rows"), [(1, 128), (4, 32), (8, 16), (16, 8), (17, 1)])
def test_sequences_that_share_a_step_share_its_rows(sequences, rows):
    budget = Budget(StepCost(FREE))
    budget.share_among(sequences)
    assert budget.most_nodes + 1 == rows


def test_rows_that_cost_are_dearer_beside_other_sequences():
    budget = Budget(StepCost({1: 1.0, 32: 1.05, 64: 2.0, 128: 4.0}))
    probs = np.linspace(0.6, 0.05, 127)
    alone = budget.affordable(probs)
    budget.num_sequences = 4
    assert 0 < budget.affordable(probs) < alone
