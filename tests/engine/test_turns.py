"""Principals share the engine's time evenly; the clients of one take turns."""

import pytest

from engine.turns import ALIKE_S, CREDIT_S, SLICE_S, Turns
from tests.support.stopped_clock import StoppedClock


@pytest.fixture
def clock():
    return StoppedClock()


@pytest.fixture
def turns(clock):
    return Turns(clock)


def run(turns, clock, seconds, *principals):
    turns.begin()
    clock.now += seconds
    turns.charge(principals)


def test_time_is_shared_by_those_who_ran_side_by_side(turns, clock):
    run(turns, clock, 3.0, "ada", "ada", "bob")
    assert turns.used_s("ada") == pytest.approx(2.0)
    assert turns.used_s("bob") == pytest.approx(1.0)


def test_clients_of_one_principal_take_turns_and_a_new_one_is_first(turns):
    turns.take("ada", "one")
    turns.take("ada", "two")
    ranks = [turns.rank("ada", client) for client in ("new", "one", "two")]
    assert ranks == sorted(ranks)
    turns.forget("ada", "two")
    assert turns.rank("ada", "two") == turns.rank("ada", "new")


def test_who_ran_a_little_more_takes_turns_with_the_others(turns, clock):
    """Else whoever has a longer prompt would wait until all others had as much."""
    for name in ("ada", "eve"):
        turns.take(name, "x")
    run(turns, clock, 0.9 * ALIKE_S, "ada")
    assert turns.rank("ada", "x") < turns.rank("eve", "x")
    run(turns, clock, 0.2 * ALIKE_S, "ada")
    assert turns.rank("eve", "x") < turns.rank("ada", "x")


@pytest.mark.parametrize("seconds", [0.0, 1.0])
def test_a_new_client_does_not_come_before_another_principal_whose_turn_it_is(
    turns, clock, seconds
):
    turns.take("ada", "x")
    turns.take("eve", "x")
    run(turns, clock, seconds, "eve")
    assert turns.rank("ada", "x") < turns.rank("eve", "a name that was never heard")


def test_who_was_away_has_saved_up_no_more_than_a_bounded_credit(turns, clock):
    run(turns, clock, 100.0, "eve")
    turns.arrive("ada", ["eve"])
    assert turns.used_s("ada") == 100.0 - CREDIT_S
    turns.arrive("ada", ["eve"])
    assert turns.used_s("ada") == 100.0 - CREDIT_S


def test_who_asks_when_nobody_waits_saves_up_no_more_either(turns, clock):
    run(turns, clock, 100.0, "eve")
    turns.take("eve", "x")
    turns.arrive("ada", [])
    assert turns.is_far_behind("ada", "eve")
    run(turns, clock, CREDIT_S, "ada")
    assert not turns.is_far_behind("ada", "eve")


def test_those_who_had_less_than_who_was_served_last_take_turns(turns, clock):
    """Before, one who had typed for long waited until everybody else had used up a credit."""
    run(turns, clock, 10.0, "eve")
    turns.take("eve", "x")
    for name in ("ada", "bob"):
        turns.arrive(name, [])
        turns.take(name, "x")
        run(turns, clock, 0.1, name)
    ranked = sorted(["bob", "eve", "ada"], key=lambda one: turns.rank(one, "x"))
    assert ranked == ["eve", "ada", "bob"]


def test_who_goes_and_comes_back_keeps_what_it_has_used(turns, clock):
    run(turns, clock, 5.0, "eve")
    turns.arrive("eve", ["ada"])
    assert turns.used_s("eve") == 5.0


def test_a_job_makes_way_for_who_is_far_behind_only(turns, clock):
    run(turns, clock, 0.9 * SLICE_S, "eve")
    assert not turns.is_far_behind("ada", "eve")
    run(turns, clock, 0.2 * SLICE_S, "eve")
    assert turns.is_far_behind("ada", "eve")
    assert not turns.is_far_behind("eve", "ada")


def test_the_memory_of_turns_is_bounded_however_many_names_come(turns):
    for number in range(2000):
        turns.take("eve", f"name {number}")
    assert len(turns._accounts["eve"].last_turns) <= 256
