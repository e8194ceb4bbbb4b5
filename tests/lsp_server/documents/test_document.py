"""An open document and its snapshots."""

import random

import pytest
from lsprotocol import types

from engine.host.protocol import LineSplice, Position
from lsp_server.documents.document import MAX_CHARS, Document, SpliceLog

UTF16 = types.PositionEncodingKind.Utf16


def opened(text, version=1):
    item = types.TextDocumentItem("file:///a.py", "python", version, text)
    return Document(item, 1, UTF16)


def insertion(line, character, text):
    at = types.Position(line, character)
    return types.TextDocumentContentChangePartial(types.Range(at, at), text)


def test_a_snapshot_says_what_is_open():
    snapshot = opened("a\r\nb", version=3).snapshot()
    assert (snapshot.uri, snapshot.language_id) == ("file:///a.py", "python")
    assert (snapshot.version, snapshot.lines, snapshot.line_end) == (3, ("a", "b"), "\r\n")


def test_a_position_beyond_the_last_line_means_the_end_of_the_text():
    snapshot = opened("ab\n🦉c").snapshot()
    assert snapshot.position(types.Position(7, 0)) == Position(1, 2)
    assert snapshot.position(types.Position(1, 3)) == Position(1, 2)


def test_a_snapshot_does_not_change_with_the_document():
    document = opened("a")
    before = document.snapshot()
    document.change(2, [insertion(0, 1, "b")])
    assert (before.version, before.lines) == (1, ("a",))
    assert (document.snapshot().version, document.snapshot().lines) == (2, ("ab",))
    with pytest.raises(AttributeError):
        before.version = 9


def test_changes_apply_in_their_order_each_upon_the_one_before():
    document = opened("")
    document.change(2, [insertion(0, 0, "a\n"), insertion(1, 0, "b"), insertion(1, 1, "c")])
    assert document.snapshot().lines == ("a", "bc")


def test_a_change_without_a_range_is_the_whole_text():
    document = opened("a\nb")
    document.change(2, [types.TextDocumentContentChangeWholeDocument("c\n")])
    assert document.snapshot().lines == ("c", "")


def test_positions_are_translated_both_ways():
    snapshot = opened("x\n🦉 = 1").snapshot()
    assert snapshot.position(types.Position(1, 3)) == Position(1, 2)
    assert snapshot.client_position(Position(1, 2)) == types.Position(1, 3)
    assert snapshot.position(types.Position(9, 9)) == Position(1, 5)


def test_a_line_is_what_stands_before_and_after_a_position():
    snapshot = opened("x\n🦉 = 1").snapshot()
    at = Position(1, 2)
    assert (snapshot.prefix_of_line(at), snapshot.rest_of_line(at)) == ("🦉 ", "= 1")


def test_a_line_outside_the_text_is_empty():
    snapshot = opened("x\ny").snapshot()
    assert [snapshot.line(number) for number in (-1, 0, 1, 2)] == ["", "x", "y", ""]


def test_splices_since_a_version_turn_its_lines_into_the_present_ones():
    document, rng = opened("one\ntwo\nthree"), random.Random(3)  # noqa: S311 - a draw, no secret
    known = {1: document.snapshot().lines}
    for version in range(2, 60, 2):
        inserted = [insertion(rng.randrange(4), rng.randrange(6), rng.choice("a\n\r"))]
        document.change(version, inserted * rng.randrange(3))
        known[version] = document.snapshot().lines
    for version, lines in known.items():
        mirror = list(lines)
        for splice in document.splices_since(version):
            mirror[splice.start : splice.end] = splice.lines
        assert tuple(mirror) == document.snapshot().lines
    assert document.splices_since(3) is None


SPLICE = LineSplice(0, 1, ("x",))


def test_nothing_leads_from_a_version_to_itself():
    log = SpliceLog(3)
    assert log.since(3) == ()
    log.add(4, (SPLICE,))
    assert log.since(4) == ()


def test_all_later_splices_are_told_in_their_order():
    log, others = SpliceLog(1), [LineSplice(n, n, ()) for n in range(3)]
    log.add(2, (others[0],))
    log.add(7, (others[1], others[2]))
    assert log.since(1) == tuple(others)
    assert log.since(2) == tuple(others[1:])


def test_those_up_to_a_version_lead_to_it():
    log, others = SpliceLog(1), [LineSplice(n, n, ()) for n in range(3)]
    for version, splice in enumerate(others, start=2):
        log.add(version, (splice,))
    assert log.since(1, until=3) == tuple(others[:2])
    assert log.since(2, until=2) == ()
    assert [log.since(3, until=until) for until in (2, 9)] == [None, None]


def test_a_version_that_never_was_is_not_known():
    log = SpliceLog(1)
    log.add(5, (SPLICE,))
    assert [log.since(version) for version in (0, 3, 6)] == [None, None, None]


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
