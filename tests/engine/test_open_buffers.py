"""The pool holds the open buffers of the last request, and writes only what changed."""

from engine import Buffer
from engine.decoding.pool import NgramPool
from engine.open_buffers import MOST_CHARS, OpenBuffers
from engine.workspace import Workspace


def drafted(pool: NgramPool, context: str) -> str:
    return bytes(pool.draft(list(context.encode()), 3).tokens.tolist()).decode()


def make() -> tuple[NgramPool, OpenBuffers]:
    pool = NgramPool(10_000, 256)
    return pool, OpenBuffers(Workspace(pool, lambda text: list(text.encode())))


def test_drafts_come_from_an_open_buffer():
    pool, buffers = make()
    buffers.sync([Buffer("a", "hello world")])
    assert drafted(pool, "hello ") == "wor"


def test_a_closed_buffer_is_forgotten():
    pool, buffers = make()
    buffers.sync([Buffer("a", "hello world"), Buffer("b", "other text")])
    buffers.sync([Buffer("b", "other text")])
    assert "wor" not in drafted(pool, "qzhello ")
    assert drafted(pool, "other ") == "tex"


def test_the_same_buffers_are_written_once():
    pool, buffers = make()
    open_now = [Buffer("a", "hello world"), Buffer("b", "other text")]
    buffers.sync(open_now)
    length = len(pool)
    buffers.sync(list(open_now))
    assert len(pool) == length


def test_a_changed_buffer_is_written_where_it_changed():
    pool, buffers = make()
    buffers.sync([Buffer("a", "def one():\n" * 50 + "hello world\n")])
    length = len(pool)
    buffers.sync([Buffer("a", "def one():\n" * 50 + "hello earth\n")])
    assert drafted(pool, "hello ") == "ear"
    assert len(pool) - length < 100


def test_the_most_related_buffer_is_drafted_from_first():
    pool, buffers = make()
    buffers.sync([Buffer("a", "zz hello world"), Buffer("b", "zz hello there")])
    buffers.sync([Buffer("b", "zz hello there"), Buffer("a", "zz hello world")])
    assert pool.draft(list(b"zz hello "), 1).tokens.tolist() == [ord("t")]


def test_of_two_buffers_under_one_path_the_first_counts():
    pool, buffers = make()
    buffers.sync([Buffer("a", "hello world"), Buffer("a", "hello there")])
    assert drafted(pool, "hello ") == "wor"


def test_a_buffer_that_finds_no_room_beside_the_more_related_ones_is_left_out():
    pool, buffers = make()
    buffers.sync([Buffer("a", "hello world"), Buffer("b", "x" * MOST_CHARS)])
    assert drafted(pool, "hello ") == "wor"
    assert len(pool) < 100
