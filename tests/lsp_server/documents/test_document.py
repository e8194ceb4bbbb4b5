"""An open document and its snapshots."""

import pytest
from lsprotocol import types

from engine.host.protocol import Position
from lsp_server.documents.document import Document


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
