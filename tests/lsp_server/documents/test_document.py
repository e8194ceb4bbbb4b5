"""An open document and its snapshots."""

import pytest
from lsprotocol import types

from engine.host.protocol import Position
from lsp_server.documents.document import Document


def test_a_snapshot_does_not_change_with_the_document():
    document = Document(types.TextDocumentItem("file:///a.py", "python", 1, "a"), 1)
    before, at = document.snapshot, types.Position(0, 1)
    document.change(2, [types.TextDocumentContentChangePartial(types.Range(at, at), "b")])
    assert (before.version, before.lines) == (1, ("a",))
    assert (document.snapshot.version, document.snapshot.lines) == (2, ("ab",))
    with pytest.raises(AttributeError):
        before.version = 9  # type: ignore[misc] # what is tested


def test_positions_are_translated_both_ways():
    item = types.TextDocumentItem("file:///a.py", "python", 1, "x\n🦉 = 1")
    snapshot, at = Document(item, 1).snapshot, Position(1, 2)
    assert snapshot.position(types.Position(1, 3)) == at
    assert snapshot.client_position(at) == types.Position(1, 3)
    assert snapshot.position(types.Position(9, 9)) == Position(1, 5)
    assert (snapshot.prefix_of_line(at), snapshot.rest_of_line(at)) == ("🦉 ", "= 1")
    assert [snapshot.line(number) for number in (-1, 0, 2)] == ["", "x", ""]
