"""An open document and its snapshots."""

import random

import pytest
from lsprotocol import types

from engine.host.protocol import LineSplice, Position
from lsp_server.documents.document import MAX_CHARS, Document, SpliceLog


def opened(text, version=1):
    item = types.TextDocumentItem("file:///a.py", "python", version, text)
    return Document(item, 1)


def insertion(line, character, text):
    at = types.Position(line, character)
    return types.TextDocumentContentChangePartial(types.Range(at, at), text)


def test_a_snapshot_says_what_is_open():
    snapshot = opened("a\r\nb", version=3).snapshot()
    assert (snapshot.uri, snapshot.language_id) == ("file:///a.py", "python")
    assert (snapshot.version, snapshot.lines, snapshot.line_end) == (3, ("a", "b"), "\r\n")


def test_a_snapshot_does_not_change_with_the_document():
    document = opened("a")
    before = document.snapshot()
    document.change(2, [insertion(0, 1, "b")])
    assert (before.version, before.lines) == (1, ("a",))
    assert (document.snapshot().version, document.snapshot().lines) == (2, ("ab",))
    with pytest.raises(AttributeError):
        before.version = 9


def test_positions_are_translated_both_ways():
    snapshot, at = opened("x\n🦉 = 1").snapshot(), Position(1, 2)
    assert snapshot.position(types.Position(1, 3)) == at
    assert snapshot.client_position(at) == types.Position(1, 3)
    assert snapshot.position(types.Position(9, 9)) == Position(1, 5)
    assert (snapshot.prefix_of_line(at), snapshot.rest_of_line(at)) == ("🦉 ", "= 1")
    assert [snapshot.line(number) for number in (-1, 0, 2)] == ["", "x", ""]


def test_splices_since_a_version_turn_its_lines_into_the_present_ones():
    document, rng = opened("one\ntwo\nthree"), random.Random(3)  # noqa: S311 - a draw, no secret
    known = {1: document.snapshot().lines}
    for version in range(2, 60, 2):
        inserted = [insertion(rng.randrange(4), rng.randrange(6), rng.choice("a\n\r"))]
        document.change(version, inserted * rng.randrange(3))
        known[version] = document.snapshot().lines
    for version, lines in known.items():
        mirror = list(lines)
        for splice in document.log.since(version):
            mirror[splice.start : splice.end] = splice.lines
        assert tuple(mirror) == document.snapshot().lines
    assert document.log.since(3) is None


SPLICE = LineSplice(0, 1, ("x",))


def test_the_splices_between_two_known_versions_are_told_in_their_order():
    log, others = SpliceLog(1), [LineSplice(n, n, ()) for n in range(3)]
    log.add(2, (others[0],))
    log.add(7, (others[1], others[2]))
    assert log.since(1) == tuple(others)
    assert log.since(2) == tuple(others[1:])
    assert log.since(1, until=2) == (others[0],)
    assert (log.since(7), log.since(2, until=2)) == ((), ())
    assert [log.since(*versions) for versions in ((0,), (3,), (8,), (7, 2), (7, 9))] == [None] * 5


@pytest.mark.parametrize("splices", [(SPLICE,), ()])
def test_old_changes_are_forgotten_though_they_are_short_or_empty(splices):
    log = SpliceLog(0)
    for version in range(1, 1_002):
        log.add(version, splices)
    assert log.since(0) is None
    assert log.since(1) == splices * 1_000


def test_a_change_as_long_as_a_document_is_not_kept():
    log = SpliceLog(1)
    log.add(2, (SPLICE,))
    log.add(3, (LineSplice(0, 1, ("x" * (MAX_CHARS + 1),)),))
    assert (log.since(1), log.since(2), log.since(3)) == (None, None, ())
