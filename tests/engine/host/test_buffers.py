"""The buffers of all clients: versions, splices, conflicts, silence."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import InputError
from engine.host.buffers import (
    BufferUsage,
    ClientBuffers,
    ClientId,
    HeldBuffer,
    split_at,
)
from engine.host.failures import RefusalError
from engine.host.protocol import BufferSync, LineSplice, Position
from engine.host.quotas import QuotaError, Quotas

ADA, BOB = "ada", "bob"
ONE, TWO, NOBODY = (ClientId(ADA, name) for name in ("one", "two", "nobody"))
OTHERS_ONE = ClientId(BOB, "one")

LINES = st.lists(st.text("ab\u2028é", max_size=3), max_size=5).map(tuple)
EDITS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), LINES), max_size=8)


def whole(uri: str, *lines: str, version: int = 1) -> BufferSync:
    return BufferSync(uri, uri, "python", version, lines=lines)


def delta(uri: str, base: int, *splices: LineSplice, version: int) -> BufferSync:
    return BufferSync(uri, uri, "python", version, base_version=base, splices=splices)


@given(LINES, EDITS)
def test_splices_do_what_a_list_does(lines, edits):
    naive, splices = list(lines), []
    for one, other, new in edits:
        start, end = sorted(min(place, len(naive)) for place in (one, other))
        splices.append(LineSplice(start, end, new))
        naive = naive[:start] + list(new) + naive[end:]
    buffers = ClientBuffers()
    buffers.sync(ONE, "/", [whole("a", *lines)])
    buffers.sync(ONE, "/", [delta("a", 1, *splices, version=2)])
    assert buffers.get(ONE, "a", 2).lines == tuple(naive)
    assert buffers.get(ONE, "a", 2).as_buffer.text == "\n".join(naive)
    buffers.sync(TWO, "/", [whole("a", *naive)])
    assert buffers.get(ONE, "a").num_bytes == buffers.get(TWO, "a").num_bytes


@pytest.mark.parametrize(("start", "end"), [(-1, 0), (0, 3), (2, 1), (3, 3), (-2, -1)])
def test_a_splice_out_of_range_is_refused_and_changes_nothing(start, end):
    buffers = ClientBuffers()
    buffers.sync(ONE, "/", [whole("a", "x", "y")])
    with pytest.raises(InputError, match=f"lines {start} to {end} are no range of 2 lines"):
        buffers.sync(ONE, "/", [delta("a", 1, LineSplice(start, end, ()), version=2)])
    assert buffers.get(ONE, "a", 1).lines == ("x", "y")


def test_buffers_in_conflict_are_named_and_all_others_taken_over():
    buffers = ClientBuffers()
    buffers.sync(ONE, "/", [whole("a", "x", version=3)])
    with pytest.raises(RefusalError) as error:
        buffers.sync(
            ONE,
            "/",
            [delta("a", 2, version=4), whole("b", "y"), delta("unknown", 1, version=2)],
        )
    assert error.value.problem.uris == ("a", "unknown")
    assert buffers.get(ONE, "a", 3).lines == ("x",)
    assert buffers.get(ONE, "b", 1).lines == ("y",)


def test_a_whole_buffer_replaces_any_version():
    buffers = ClientBuffers()
    buffers.sync(ONE, "/", [whole("a", "new", version=9)])
    buffers.sync(ONE, "/", [whole("a", "older", version=2)])
    assert buffers.get(ONE, "a", 2).lines == ("older",)
    with pytest.raises(RefusalError):
        buffers.get(ONE, "a", 9)


def test_clients_do_not_see_each_others_buffers():
    buffers = ClientBuffers()
    buffers.sync(ONE, "/", [whole("a", "x")])
    for client, uri in ((TWO, "a"), (ONE, "b"), (OTHERS_ONE, "a")):
        with pytest.raises(RefusalError, match=uri):
            buffers.get(client, uri, 1)


def test_the_others_come_with_the_one_synced_last_first():
    buffers = ClientBuffers()
    for uri in "abc":
        buffers.sync(ONE, "/", [whole(uri, uri)])
    buffers.sync(ONE, "/", [delta("a", 1, version=2)])
    assert [one.path for one in buffers.others(ONE, buffers.get(ONE, "c", 1))] == ["a", "b"]


def test_what_is_closed_is_forgotten_and_who_leaves_takes_all():
    buffers = ClientBuffers()
    buffers.sync(ONE, "/", [whole("a"), whole("b")])
    buffers.close(ONE, ["a", "never opened"])
    assert (buffers.usage_of().clients, buffers.usage_of().buffers) == (1, 1)
    buffers.close(ONE, None)
    buffers.close(ONE, None)
    buffers.close(NOBODY, ["a"])
    assert (buffers.usage_of().clients, buffers.usage_of().buffers) == (0, 0)


def test_buffers_of_one_path_are_told_apart_by_their_uri():
    buffers = ClientBuffers()
    for cell in ("cell-1", "cell-2"):
        buffers.sync(ONE, "/", [BufferSync(cell, "nb.ipynb", "python", 1, lines=(cell,))])
    other = HeldBuffer("file:///a.py", "a.py", 1, ())
    cells = [held.as_buffer for held in buffers.others(ONE, other)]
    assert [(cell.path, cell.key) for cell in cells] == [
        ("nb.ipynb", "cell-2"),
        ("nb.ipynb", "cell-1"),
    ]


def test_the_cells_of_one_notebook_are_no_other_files_of_each_other():
    buffers = ClientBuffers()
    for cell, notebook in (("n-1", "n"), ("n-2", "n"), ("m-1", "m"), ("a.py", "")):
        sync = BufferSync(cell, cell, "python", 1, lines=(cell,), notebook=notebook)
        buffers.sync(ONE, "/", [sync])
    others = buffers.others(ONE, buffers.get(ONE, "n-1", 1))
    assert [held.uri for held in others] == ["a.py", "m-1"]
    others = buffers.others(ONE, buffers.get(ONE, "a.py", 1))
    assert [held.uri for held in others] == ["m-1", "n-2", "n-1"]


def test_a_principal_closes_and_counts_only_what_its_own_clients_hold():
    buffers = ClientBuffers()
    buffers.sync(ONE, "/", [whole("a", "x")])
    buffers.sync(TWO, "/", [])
    buffers.sync(OTHERS_ONE, "/", [whole("a", "x" * 1000), whole("b")])
    assert not buffers.close(ONE, ["b"]).buffers
    assert buffers.usage_of(ADA)[:2] == (2, 1)
    assert 1000 < buffers.usage_of(BOB).num_bytes < 2000
    buffers.close(ONE, None)
    buffers.close(TWO, None)
    assert buffers.usage_of(ADA) == BufferUsage(0, 0, 0)
    assert buffers.get(OTHERS_ONE, "b").lines == ()


LONG = whole("long", *["x" * 100_000] * 12)


@pytest.mark.parametrize(
    ("client", "more", "reason"),
    [
        (ClientId(ADA, "third"), [], "you would have 3 editors here, and may have 2: close some"),
        (ONE, [whole("b"), whole("c")], "you would have 3 open files here"),
        (ONE, [LONG], "you would have 2 MB of open files here, and may have 1"),
    ],
)
def test_beyond_its_quota_a_principal_is_refused_and_others_are_not(client, more, reason):
    quotas = Quotas(clients=2, buffers=2, megabytes=1)
    buffers = ClientBuffers(lambda _: quotas)
    buffers.sync(ONE, "/", [whole("a")])
    buffers.sync(TWO, "/", [])
    with pytest.raises(QuotaError, match=reason):
        buffers.sync(client, "/", more)
    assert buffers.usage_of(ADA)[:2] == (2, 1)
    buffers.sync(OTHERS_ONE, "/", [whole("a"), whole("b")])
    buffers.close(ONE, None)
    buffers.sync(ClientId(ADA, "third"), "/", [whole("a"), whole("b")])


def test_text_that_is_added_by_splices_counts_and_what_shrinks_is_never_refused():
    quotas = Quotas(megabytes=2)
    buffers = ClientBuffers(lambda _: quotas)
    buffers.sync(ONE, "/", [LONG])
    more = LineSplice(0, 0, ("y" * 100_000,) * 9)
    with pytest.raises(QuotaError):
        buffers.sync(ONE, "/", [delta("long", 1, more, version=2)])
    quotas = Quotas(megabytes=1)
    buffers.sync(ONE, "/", [delta("long", 1, LineSplice(0, 1, ()), version=2)])
    assert len(buffers.get(ONE, "long").lines) == 11


def test_long_names_count_as_text_does():
    buffers = ClientBuffers(lambda _: Quotas(megabytes=1))
    with pytest.raises(QuotaError):
        buffers.sync(ONE, "/", [whole("file:///" + "x" * 1_000_000)])


@given(LINES.filter(bool), st.data())
def test_the_text_falls_apart_at_a_position_and_nothing_is_lost(lines, data):
    line = data.draw(st.integers(0, len(lines) - 1))
    character = data.draw(st.integers(0, len(lines[line])))
    before, behind = split_at(lines, Position(line, character))
    assert before + behind == "\n".join(lines)
    assert before.count("\n") == line
    assert len(before.rpartition("\n")[2]) == character


def test_of_a_huge_text_the_near_lines_are_left_and_the_cuts_stay():
    lines = tuple(map(str, range(200_000)))
    cuts = set()
    for line in range(100_000, 100_100):
        before, behind = (part.split("\n") for part in split_at(lines, Position(line, 1)))
        assert before[-2] == str(line - 1)
        assert behind[1] == str(line + 1)
        assert 32_768 <= len(before) < 40_000
        assert 16_384 <= len(behind) < 24_000
        cuts.add((before[0], behind[-1]))
    assert len(cuts) == 1
    assert all(int(first) % 4096 == 0 for first, _ in cuts)


@pytest.mark.parametrize("position", [(-1, 0), (2, 0), (0, -1), (0, 2), (1, 1)])
def test_a_position_outside_of_the_text_is_refused(position):
    with pytest.raises(InputError, match=r"there is no line|has no character"):
        split_at(("x", ""), Position(*position))
