"""Which replica a workspace is on."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from engine.host.scale.placement import ranked

NAMES = st.sets(st.text(min_size=1, max_size=8), min_size=1, max_size=6)
LOAD = 8  # that is aimed at


def order(workspace, replicas, last=""):
    """As it is while nobody has anything to do."""
    return ranked(workspace, dict.fromkeys(replicas, 0), last, LOAD)


@given(NAMES, st.text())
def test_every_router_finds_the_same_order_of_all_replicas(replicas, workspace):
    found = order(workspace, replicas)
    assert sorted(found) == sorted(replicas)
    assert found == order(workspace, reversed(found))


@given(NAMES, st.text(min_size=1, max_size=8), st.text())
def test_a_replica_that_joins_takes_a_place_in_the_order_and_changes_no_other(
    replicas, new, workspace
):
    before, after = order(workspace, replicas), order(workspace, {*replicas, new})
    assert [one for one in after if one in before] == [one for one in before if one in after]


def test_new_workspaces_are_spread_evenly():
    firsts = Counter(order(str(number), "abcd")[0] for number in range(4000))
    assert all(800 < count < 1200 for count in firsts.values())


def test_a_workspace_stays_where_it_was():
    first, second, third = order("shop", "abc")
    assert order("shop", "abc", last=third) == [third, first, second]


def test_a_workspace_whose_replica_is_gone_goes_where_its_hash_says():
    assert order("shop", "abc", last="d") == order("shop", "abc")


def test_a_workspace_leaves_a_replica_that_has_too_much_to_do_for_the_idlest():
    ongoing = {"a": 12, "b": 3, "c": 2}
    assert ranked("shop", ongoing, "a", LOAD)[0] == "c"


def test_a_workspace_stays_while_the_others_have_much_to_do_or_itself_little():
    assert ranked("shop", {"a": 12, "b": 4}, "a", LOAD)[0] == "a"
    assert ranked("shop", {"a": LOAD - 1, "b": 0}, "a", LOAD)[0] == "a"


def test_a_new_workspace_begins_where_there_is_room():
    home, other = order("shop", "ab")
    assert ranked("shop", {home: LOAD, other: 0}, "", LOAD) == [other, home]
