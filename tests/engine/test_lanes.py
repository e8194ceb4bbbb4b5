"""Each completion has a lane for itself; a workspace comes back to the one that knows it."""

from engine.drafting.edited_file import EditedFile
from engine.drafting.open_buffers import OpenBuffers
from engine.drafting.pool import NgramPool
from engine.drafting.tree import Source
from engine.lanes import Lane, Lanes
from engine.request import Buffer, ClosedBuffers, CompletionRequest


def make_lanes() -> Lanes:
    def make() -> Lane:
        pool = NgramPool(1000, 300)

        def encode(text: str) -> list[int]:
            return [ord(character) for character in text]

        return Lane(pool, OpenBuffers(pool, encode), EditedFile(pool, encode))

    return Lanes(make)


def test_lanes_are_made_as_they_are_needed():
    lanes = make_lanes()
    with lanes.take("a") as first, lanes.take("b") as second:
        assert first is not second
    with lanes.take("c") as third:
        assert third in (first, second)


def test_a_workspace_comes_back_to_its_lane():
    lanes = make_lanes()
    with lanes.take("a") as first, lanes.take("b") as second:
        pass
    with lanes.take("b") as again:
        assert again is second
    with lanes.take("a") as again:
        assert again is first


def test_a_new_workspace_gets_the_lane_that_was_left_longest_ago():
    lanes = make_lanes()
    with lanes.take("a") as first, lanes.take("b"):
        pass
    with lanes.take("b"):
        pass
    with lanes.take("c") as third:
        assert third is first


def test_a_second_completion_of_a_workspace_gets_another_lane():
    lanes = make_lanes()
    with lanes.take("a") as first, lanes.take("a") as second:
        assert first is not second


def test_tokens_are_those_of_all_lanes_and_completions_are_forgotten_in_all():
    lanes = make_lanes()
    with lanes.take("a") as first, lanes.take("b") as second:
        first.pool.add([1, 2, 3], Source.OPEN_BUFFER)
        second.pool.add([4, 5], Source.PREVIOUS_COMPLETION)
    assert lanes.pool_tokens == len(first.pool) + len(second.pool)
    lanes.forget_completions()
    assert first.pool.draft([1, 2], 8).tokens.tolist() == [3]
    assert not len(second.pool.draft([4], 8).tokens)


CLOSED = ClosedBuffers("a", frozenset({"1"}), frozenset({"a.py"}), "", frozenset())


def test_closed_buffers_and_what_was_written_in_them_are_forgotten():
    lanes = make_lanes()
    with lanes.take("a") as lane:
        lane.buffers.sync("a", [Buffer("a.py", "\1\2\3", key="1")])  # characters are the tokens
        lane.pool.add([4, 5], Source.PREVIOUS_COMPLETION, "a.py")
        lane.pool.add([6, 7], Source.PREVIOUS_COMPLETION, "b.py")
    lanes.forget(CLOSED)
    assert [follows(lane.pool, token) for token in (1, 4, 6)] == [[], [], [7]]


def test_the_file_that_was_edited_last_is_forgotten_when_it_is_closed():
    lanes = make_lanes()
    with lanes.take("a") as lane, lane.edited.completed(edited("a", "a.py"), ""):
        assert follows(lane.pool, 1) == [2]
    lanes.forget(CLOSED)
    assert follows(lane.pool, 1) == []


def test_an_edited_file_stays_where_another_is_closed():
    lanes = make_lanes()
    with lanes.take("a") as lane, lane.edited.completed(edited("a", "b.py"), ""):
        pass
    lanes.forget(CLOSED)
    assert follows(lane.pool, 1) == [2]
    with lanes.take("b") as lane, lane.edited.completed(edited("b", "a.py"), ""):
        pass
    lanes.forget(CLOSED)
    assert follows(lane.pool, 1) == [2]


def edited(workspace, path):
    return CompletionRequest("\1\2\n", "\1\2", path=path, workspace=workspace)


def test_a_lane_in_use_forgets_when_it_is_left():
    lanes = make_lanes()
    with lanes.take("a") as lane:
        with lane.pool.savepoint():
            lanes.forget(CLOSED)
        lane.pool.add([4, 5], Source.PREVIOUS_COMPLETION, "a.py")  # what was under way
    assert follows(lane.pool, 4) == []


def follows(pool, token):
    return pool.draft([token], 1).tokens.tolist()
