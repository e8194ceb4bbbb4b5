"""What is kept for the workspaces of each principal."""

from itertools import count

from engine.per_workspace import PerWorkspace
from engine.request import ClosedBuffers, CompletionRequest


def numbered(most_size=2**62):
    """Each value that is made is another number."""
    return PerWorkspace(count().__next__, most_size)


def asked(workspace, principal=""):
    return CompletionRequest(prefix="", suffix="", workspace=workspace, principal=principal)


def closed(workspace, departed="", principal=""):
    return ClosedBuffers(workspace, departed=departed, principal=principal)


def test_as_many_people_as_share_a_token_keep_what_is_theirs():
    kept = numbered()
    team = [asked(f"editor {number}\0shop") for number in range(64)]
    first = [kept.of(one) for one in team]
    assert [kept.of(one) for one in team] == first == list(range(64))
    kept.of(asked("one more"))
    assert kept.of(team[1]) == first[1]
    assert kept.of(team[0]) not in first


def test_what_was_asked_for_longest_ago_goes_where_all_are_too_large():
    kept = numbered(most_size=100)
    small, large = asked("small"), asked("large")
    assert [kept.of(small, 30), kept.of(large, 70), kept.of(small, 30)] == [0, 1, 0]
    assert kept.of(asked("other"), 30) == 2
    assert kept.of(small, 30) == 0
    assert kept.of(large, 101) == 3
    assert kept.of(large, 1) == 3
    assert kept.of(small, 30) == 4, "what once was too large counts as such"


def test_no_principal_takes_what_another_has():
    kept = numbered(most_size=100)
    assert kept.of(asked("shop", "ada"), 100) == 0
    assert kept.of(asked("shop", "eve"), 100) == 1
    assert kept.of(asked("shop", "ada"), 100) == 0


def test_what_knows_of_closed_buffers_goes_and_all_else_stays():
    kept = numbered()
    names = ["ada\0shop", "ada\0bank", "eve\0shop"]
    for name in names:
        kept.of(asked(name))
    kept.of(asked("ada\0shop", "joe"))
    kept.forget(closed("ada\0shop"))
    assert [kept.of(asked(name)) for name in names] == [4, 1, 2]
    kept.forget(closed("ada\0bank", departed="ada\0"))
    assert [kept.of(asked(name)) for name in names] == [5, 6, 2]
    kept.forget(ClosedBuffers.of_all(""))
    assert [kept.of(asked(name)) for name in names] == [7, 8, 9]
    assert kept.of(asked("ada\0shop", "joe")) == 3
