"""Which replica a workspace is on."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from engine.host.scale.placement import Placement

NAMES = st.sets(st.text(min_size=1, max_size=8), min_size=1, max_size=6)


@given(NAMES, st.text())
def test_every_router_finds_the_same_order_of_all_replicas(replicas, workspace):
    order = Placement().order(workspace, replicas)
    assert sorted(order) == sorted(replicas)
    assert order == Placement().order(workspace, list(reversed(order)))


@given(NAMES, st.text(min_size=1, max_size=8), st.text())
def test_a_replica_that_joins_moves_no_workspace_but_to_itself(replicas, new, workspace):
    before = Placement().order(workspace, replicas)
    after = Placement().order(workspace, {*replicas, new})
    assert [one for one in after if one in before] == [one for one in before if one in after]


def test_workspaces_are_spread_evenly():
    firsts = Counter(Placement().order(str(number), "abcd")[0] for number in range(4000))
    assert all(800 < count < 1200 for count in firsts.values())


def test_a_workspace_that_was_moved_stays_where_it_went():
    placement = Placement()
    first, second, third = placement.order("shop", "abc")
    placement.note("shop", third, "abc")
    assert placement.order("shop", "abc") == [third, first, second]
    assert placement.order("other", "abc") == Placement().order("other", "abc")


def test_a_workspace_goes_back_when_the_replica_that_took_it_is_gone():
    placement = Placement()
    first, second, third = placement.order("shop", "abc")
    placement.note("shop", third, "abc")
    assert placement.order("shop", {first, second}) == [first, second]


def test_a_workspace_that_is_served_at_home_is_not_remembered():
    placement = Placement(most_moved=1)
    first, second = placement.order("shop", "ab")
    placement.note("shop", second, "ab")
    placement.note("shop", first, "ab")
    assert placement.order("shop", "ab") == [first, second]


def test_the_workspace_that_moved_longest_ago_is_forgotten_first():
    placement = Placement(most_moved=1)
    first, second = placement.order("shop", "ab")
    placement.note("shop", second, "ab")
    other = placement.order("other", "ab")
    placement.note("other", other[1], "ab")
    assert placement.order("shop", "ab") == [first, second]
    assert placement.order("other", "ab") == [other[1], other[0]]
