"""The pool holds the open buffers of the last request, and writes only what changed."""

from engine import Buffer
from engine.decoding.pool import NgramPool
from engine.open_buffers import OpenBuffers


def drafted(pool: NgramPool, context: str) -> str:
    return bytes(pool.draft(list(context.encode()), 3).tokens.tolist()).decode()


def make() -> tuple[NgramPool, OpenBuffers]:
    pool = NgramPool(10_000, 256)
    return pool, OpenBuffers(pool, lambda text: list(text.encode()))


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
