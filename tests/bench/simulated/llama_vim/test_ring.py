"""llama.vim's chunks of other places."""

import random

import pytest

from tests.bench.simulated.llama_vim.ring import Ring, similarity


@pytest.fixture
def ring():
    return Ring(random.Random(1))  # noqa: S311 - which lines are a chunk


def text(name, length):
    return [f"{name}{number} = {name}" for number in range(length)]


def read_all(ring):
    while ring.update():
        pass
    return ring.chunks


def test_around_the_cursor_of_a_buffer_that_is_entered(ring):
    ring.enter("a.py", text("a", 100), 0)
    (chunk,) = read_all(ring)
    assert chunk.lines == tuple(text("a", 33))
    assert chunk.extra == {"filename": "a.py", "text": "\n".join(text("a", 33)) + "\n"}


def test_of_more_lines_some_are_drawn(ring):
    ring.enter("a.py", text("a", 100), 50)
    (chunk,) = read_all(ring)
    assert len(chunk.lines) == 33
    assert set(chunk.lines) <= set(text("a", 100)[18:83])


def test_a_chunk_that_is_there_is_not_taken_again(ring):
    for _ in range(2):
        ring.enter("a.py", text("a", 20), 0)
    assert len(read_all(ring)) == 1


def test_few_lines_are_no_chunk(ring):
    ring.enter("a.py", ["x", "y"], 0)
    assert not ring.update()


def test_sixteen_are_kept_the_newest_last(ring):
    for number in range(20):
        ring.enter(f"{number}.py", text(f"name{number}_", 20), 0)
        read_all(ring)
    assert [chunk.path for chunk in ring.chunks] == [f"{number}.py" for number in range(4, 20)]


def test_a_chunk_like_another_takes_its_place(ring):
    ring.enter("a.py", text("a", 40)[:33], 0)
    read_all(ring)
    ring.enter("a.py", [*text("a", 32), "b"], 0)
    assert len(read_all(ring)) == 1


def test_a_chunk_like_the_cursors_surroundings_goes(ring):
    ring.enter("a.py", text("a", 20), 0)
    ring.enter("b.py", text("b", 20), 0)
    read_all(ring)
    ring.evict_like(text("a", 20), 0)
    assert [chunk.path for chunk in ring.chunks] == ["b.py"]


def test_beyond_the_window_of_a_request_that_is_far_from_the_last(ring):
    lines = [f"line{number} value{number}" for number in range(2000)]
    ring.look_around("a.py", lines, 1000)
    above, below = read_all(ring)
    assert set(above.lines) <= set(lines[:745])
    assert set(below.lines) <= set(lines[1064:1129])
    ring.look_around("a.py", lines, 1032)
    assert not ring.queued
    ring.look_around("a.py", lines, 1033)
    assert ring.queued


def test_similarity_is_of_words():
    assert similarity(["a b"], ["b a"]) == 1.0
    assert similarity(["a b"], ["a c"]) == 0.5
    assert similarity([""], ["!"]) == 1.0
    assert similarity(["a"], ["b"]) == 0.0
