"""The pool holds the open buffers of the last request, and writes only those that changed."""

import pytest

from engine.drafting.open_buffers import MOST_CHARS, OpenBuffers
from engine.drafting.pool import NgramPool, PoolFullError
from engine.request import Buffer


def drafted(pool: NgramPool, context: str) -> str:
    return bytes(pool.draft(list(context.encode()), 3).tokens.tolist()).decode()


def make(capacity: int = 10_000) -> tuple[NgramPool, OpenBuffers]:
    pool = NgramPool(capacity, 256)
    return pool, OpenBuffers(pool, lambda text: list(text.encode()))


def test_a_closed_buffer_is_forgotten():
    pool, buffers = make()
    buffers.sync([Buffer("a", "hello world"), Buffer("b", "other text")])
    buffers.sync([Buffer("b", "other text")])
    assert "wor" not in drafted(pool, "qzhello ")
    assert drafted(pool, "other ") == "tex"


def test_a_changed_buffer_is_written_again_and_the_less_related_ones_are_not():
    pool, buffers = make()
    other = Buffer("b", "def one():\n" * 50)
    assert buffers.sync([Buffer("a", "hello world\n"), other])
    length = len(pool)
    assert buffers.sync([Buffer("a", "hello earth\n"), other])
    assert drafted(pool, "hello ") == "ear"
    assert len(pool) - length < 20


def test_buffers_that_only_change_places_are_not_encoded_again():
    """As when the user turns to another file: the one before is the most related one from now on."""
    pool, encoded = NgramPool(10_000, 256), []

    def encode(text):
        encoded.append(text)
        return list(text.encode())

    buffers = OpenBuffers(pool, encode)
    one, two, three = (
        Buffer("a", "hello world"),
        Buffer("b", "other text"),
        Buffer("c", "good evening"),
    )
    buffers.sync([one, two, three])
    encoded.clear()
    buffers.sync([three, Buffer("d", "new words"), one])
    assert encoded == ["new words"]
    assert [drafted(pool, one) for one in ("hello ", "good ", "new ")] == ["wor", "eve", "wor"]


def test_the_most_related_buffer_is_drafted_from_first():
    pool, buffers = make()
    buffers.sync([Buffer("a", "zz hello world"), Buffer("b", "zz hello there")])
    buffers.sync([Buffer("b", "zz hello there"), Buffer("a", "zz hello world")])
    assert pool.draft(list(b"zz hello "), 1).tokens.tolist() == [ord("t")]


def test_of_two_buffers_under_one_path_the_first_counts():
    pool, buffers = make()
    buffers.sync([Buffer("a", "hello world"), Buffer("a", "hello there")])
    assert drafted(pool, "hello ") == "wor"


def test_buffers_of_one_path_and_two_keys_are_two_documents():
    pool, buffers = make()
    cells = [Buffer("nb", "hello world", key="cell-1"), Buffer("nb", "other text", key="cell-2")]
    buffers.sync(cells)
    assert drafted(pool, "hello ") == "wor"
    assert drafted(pool, "other ") == "tex"
    length = len(pool)
    buffers.sync(list(cells))
    assert len(pool) == length
    buffers.sync(cells[1:])
    assert "wor" not in drafted(pool, "qzhello ")
    assert drafted(pool, "other ") == "tex"


def test_a_buffer_that_finds_no_room_beside_the_more_related_ones_is_left_out():
    pool, buffers = make()
    buffers.sync([Buffer("a", "hello world"), Buffer("b", "x" * MOST_CHARS)])
    assert drafted(pool, "hello ") == "wor"
    assert len(pool) < 100


def test_a_full_pool_loses_the_buffers_that_did_not_fit_and_no_others():
    pool, buffers = make(400)
    buffers.sync([Buffer("a", "hello world")])
    with pytest.raises(PoolFullError):
        buffers.sync([Buffer("b", "x" * 500), Buffer("a", "hello world")])
    buffers.sync([Buffer("a", "hello earth")])
    assert drafted(pool, "hello ") == "ear"


def test_buffers_are_closed_by_their_keys_and_others_stay():
    pool, buffers = make()
    here = [Buffer("a", "hello world", key="1"), Buffer("b", "other text", key="2")]
    buffers.sync(here)
    buffers.forget({"1", "3"})
    assert "wor" not in drafted(pool, "qzhello ")
    assert drafted(pool, "other ") == "tex"
    buffers.sync(here)
    assert drafted(pool, "hello ") == "wor"


def test_much_new_text_comes_in_parts_the_most_related_first():
    """Whoever shares the engine waits while it is tokenised."""
    pool, encoded = NgramPool(3_000_000, 256), []

    def encode(text):
        encoded.append(len(text))
        return list(text.encode())

    buffers = OpenBuffers(pool, encode)
    near = Buffer("a", "".join(f"near hello world {n}\n" for n in range(8_000)))
    far = Buffer("b", "".join(f"yonder says that {n}\n" for n in range(25_000)))
    num_calls = 0
    while buffers.sync([near, far]):
        assert sum(encoded) <= 300_000
        assert drafted(pool, "near hello ") == "wor"
        encoded.clear()
        num_calls += 1
    assert num_calls == 3
    assert drafted(pool, "yonder says ") == "tha"
    assert not encoded


def test_closing_a_long_buffer_forgets_all_its_parts():
    pool, buffers = make(1_000_000)
    long = Buffer("a", "".join(f"hello world {n}\n" for n in range(10_000)))
    while buffers.sync([long]):
        pass
    buffers.forget({"a"})
    assert drafted(pool, "hello ") == ""
