"""Each completion has a draft state for itself; a workspace comes back to the one it knows."""

from dataclasses import replace

import pytest

from engine.drafting.draft_state import DraftState, DraftStates
from engine.drafting.edited_file import EditedFile
from engine.drafting.open_buffers import OpenBuffers
from engine.drafting.pool import NgramPool
from engine.drafting.recycler import Recycler
from engine.drafting.tree import Source
from engine.request import Buffer, ClosedBuffers, CompletionRequest

CLOSED = ClosedBuffers("a", frozenset({"1"}), frozenset({"a.py"}), "", frozenset())


def make_states(most: int = 16, most_tokens: int = 10_000) -> DraftStates:
    def make(principal: str) -> DraftState:
        pool = NgramPool(1000, 300)

        def encode(text: str) -> list[int]:
            return [ord(character) for character in text]

        repository = OpenBuffers(pool, encode, Source.REPOSITORY)
        buffers, edited = OpenBuffers(pool, encode), EditedFile(pool, encode)
        return DraftState(principal, Recycler(300), pool, buffers, repository, edited)

    return DraftStates(make, most, most_tokens)


def test_states_are_made_as_they_are_needed():
    states = make_states()
    with states.take("a") as first, states.take("b") as second:
        assert first is not second
    with states.take("c") as third:
        assert third not in (first, second)


def test_a_workspace_comes_back_to_its_state():
    states = make_states()
    with states.take("a") as first, states.take("b") as second:
        pass
    with states.take("b") as again:
        assert again is second
    with states.take("a") as again:
        assert again is first


def test_a_new_workspace_takes_over_that_of_one_whose_client_has_left():
    states = make_states()
    with states.take("ada\0x") as first, states.take("eve\0x"):
        pass
    states.forget(replace(CLOSED, workspace="ada\0x", departed="ada\0"))
    with states.take("joe\0x") as third:
        assert third is first


def test_beyond_the_most_tokens_of_a_principal_the_state_left_longest_ago_goes():
    states = make_states(most_tokens=12)
    held = {}
    for name in "abc":
        with states.take(name, "ada") as held[name]:
            held[name].pool.add([1, 2], Source.OPEN_BUFFER)
    with states.take("a", "another's") as other:
        other.pool.add([1] * 8, Source.OPEN_BUFFER)
    assert states.pool_tokens("ada") == 12
    with states.take("b", "ada"):
        held["b"].pool.add([3], Source.OPEN_BUFFER)
    assert states.pool_tokens("ada") == 10, "with two separators more: all but the first"
    with (
        states.take("a", "ada") as again,
        states.take("c", "ada") as third,
        states.take("b", "ada") as second,
    ):
        assert (third, second) == (held["c"], held["b"])
        assert again is not held["a"]
    with states.take("a", "another's") as again:
        assert again is other


def test_the_state_that_was_used_last_stays_however_large_it_is():
    states = make_states(most_tokens=10)
    with states.take("a") as first:
        first.pool.add([1] * 20, Source.OPEN_BUFFER)
    with states.take("a") as again:
        assert again is first


def test_tokens_are_those_of_all_states_and_completions_are_forgotten_in_all():
    states = make_states()
    with states.take("a") as first, states.take("b") as second:
        first.pool.add([1, 2, 3], Source.OPEN_BUFFER)
        second.pool.add([4, 5], Source.PREVIOUS_COMPLETION)
    assert states.pool_tokens() == len(first.pool) + len(second.pool)
    states.forget_completions()
    assert first.pool.draft([1, 2], 8).tokens.tolist() == [3]
    assert not len(second.pool.draft([4], 8).tokens)


def test_closed_buffers_and_what_was_written_in_them_are_forgotten():
    states = make_states()
    with states.take("a") as state:
        state.buffers.sync([Buffer("a.py", "\1\2\3", key="1")])  # characters are the tokens
        state.pool.add([4, 5], Source.PREVIOUS_COMPLETION, "a.py")
        state.pool.add([6, 7], Source.PREVIOUS_COMPLETION, "b.py")
    states.forget(CLOSED)
    assert [follows(state.pool, token) for token in (1, 4, 6)] == [[], [], [7]]


def test_the_file_that_was_edited_last_is_forgotten_when_it_is_closed():
    states = make_states()
    with states.take("a") as state, state.edited.completed(edited("a", "a.py"), ""):
        assert follows(state.pool, 1) == [2]
    states.forget(CLOSED)
    assert follows(state.pool, 1) == []


@pytest.mark.parametrize(("workspace", "path"), [("a", "b.py"), ("b", "a.py")])
def test_a_file_of_another_name_or_workspace_stays(workspace, path):
    states = make_states()
    with states.take(workspace) as state:
        state.buffers.sync([Buffer(path, "\4\5\6")])
        with state.edited.completed(edited(workspace, path), ""):
            pass
    states.forget(CLOSED)
    assert [follows(state.pool, token) for token in (1, 4)] == [[2], [5]]


LEFT = ClosedBuffers("ada\0new", frozenset(), frozenset(), "", frozenset(), departed="ada\0")


def test_nothing_of_a_client_that_left_is_drafted_from_any_of_its_workspaces():
    states = make_states()
    with states.take("ada\0old") as state, states.take("ada\0new") as other:
        state.repository.sync([Buffer("a.py", "abcdefgh")])
        other.repository.sync([Buffer("b.py", "ijklmnop")])
    states.forget(LEFT)
    pools = [state.pool, other.pool]
    assert [drafted(pool, text) for pool in pools for text in ("abcdefgh", "ijklmnop")] == [
        set()
    ] * 4


def test_nothing_is_drafted_of_a_client_that_leaves_while_its_completion_goes_on():
    states = make_states()
    with states.take("ada\0old") as state:
        states.forget(LEFT)
        state.repository.sync([Buffer("a.py", "abcdefgh")])
        with state.edited.completed(edited("ada\0old", "d.py"), ""):
            pass
    assert drafted(state.pool, "abcdefgh") == drafted(state.pool, "\1\2\n") == set()


def drafted(pool, text):
    """All tokens of drafts behind any part of a text."""
    tokens = [ord(character) for character in text]
    parts = [tokens[low:high] for high in range(1, len(tokens) + 1) for low in range(high)]
    return {token for part in parts for token in pool.draft(part, 8).tokens.tolist()}


def edited(workspace, path):
    return CompletionRequest("\1\2\n", "\1\2", path=path, workspace=workspace)


def test_a_state_in_use_forgets_when_it_is_left():
    states = make_states()
    with states.take("a") as state:
        with state.pool.savepoint():
            states.forget(CLOSED)
        state.pool.add([4, 5], Source.PREVIOUS_COMPLETION, "a.py")  # what was under way
    assert follows(state.pool, 4) == []


def follows(pool, token):
    return pool.draft([token], 1).tokens.tolist()


def test_a_principal_never_gets_a_state_of_another():
    states = make_states()
    with states.take("a", "ada") as first:
        first.pool.add([1, 2, 3], Source.PREVIOUS_COMPLETION, "a.py")
    with states.take("a", "eve") as second:
        assert follows(second.pool, 1) == []
        assert second.recycler is not first.recycler
    assert states.pool_tokens("ada") > states.pool_tokens("eve") > 0
    assert states.pool_tokens("nobody") == 0
    states.forget(ClosedBuffers.of_all("eve"))
    assert states.pool_tokens("eve") == 0


def test_what_another_principal_closes_stays():
    states = make_states()
    with states.take("a", "ada") as state:
        state.buffers.sync([Buffer("a.py", "\1\2\3", key="1")])
    states.forget(CLOSED)
    assert follows(state.pool, 1) == [2]
    states.forget(replace(CLOSED, principal="ada"))
    assert follows(state.pool, 1) == []


def test_beyond_the_most_states_who_has_most_loses_the_one_left_longest_ago():
    states = make_states(most=3)
    with states.take("a", "ada") as mine:
        pass
    with states.take("a", "eve") as oldest, states.take("b", "eve") as other:
        pass
    with states.take("a", "bob"):
        pass
    kept = states._states
    assert mine in kept
    assert (oldest in kept) + (other in kept) == 1
    assert len(kept) == 3


def test_states_in_use_are_never_dropped():
    states = make_states(most=1)
    with states.take("a", "ada") as mine, states.take("a", "eve") as theirs:
        assert mine in states._states
        assert theirs in states._states
