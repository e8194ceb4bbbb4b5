"""What is written in one turn of the loop leaves in one piece, in its order, and before the end."""

import asyncio

import pytest
import pytest_asyncio

from engine.host.gathered_writes import GatheredWrites

pytestmark = pytest.mark.asyncio


class Wire(asyncio.Transport):
    """Keeps what was written to it."""

    def __init__(self) -> None:
        super().__init__()
        self.pieces: list[bytes] = []
        self.ended = ""

    def write(self, data):
        assert not self.ended
        self.pieces.append(bytes(data))

    def close(self):
        self.ended = "closed"

    def abort(self):
        self.ended = "aborted"

    def get_write_buffer_size(self):
        return 7

    def is_closing(self):
        return bool(self.ended)


@pytest.fixture
def wire():
    return Wire()


@pytest_asyncio.fixture
async def writes(wire):
    return GatheredWrites(wire, asyncio.get_running_loop())


async def test_what_is_written_in_one_turn_leaves_in_one_piece(wire, writes):
    writes.write(b"head ")
    writes.write(b"body")
    assert not wire.pieces
    await asyncio.sleep(0)
    writes.write(b" more")
    await asyncio.sleep(0)
    assert wire.pieces == [b"head body", b" more"]


async def test_much_does_not_wait(wire, writes):
    writes.write(b"x" * 70_000)
    assert len(wire.pieces) == 1
    await asyncio.sleep(0)
    assert len(wire.pieces) == 1


async def test_all_is_written_before_the_connection_is_closed(wire, writes):
    writes.write(b"last words")
    writes.close()
    await asyncio.sleep(0)
    assert (wire.pieces, wire.ended, writes.is_closing()) == ([b"last words"], "closed", True)


async def test_a_connection_that_is_aborted_says_nothing_more(wire, writes):
    writes.write(b"nobody hears it")
    writes.abort()
    await asyncio.sleep(0)
    assert (wire.pieces, wire.ended) == ([], "aborted")


async def test_what_waits_here_counts_as_unread(writes):
    writes.write(b"123")
    assert writes.get_write_buffer_size() == 10


async def test_it_is_closed_once(wire, writes):
    writes.close()
    wire.ended = "closed before"
    writes.close()
    assert wire.ended == "closed before"
