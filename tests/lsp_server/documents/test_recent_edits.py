"""Which lines were edited last."""

from lsprotocol import types

from lsp_server.documents.document import Snapshot
from lsp_server.documents.recent_edits import RecentEdits


def text(*lines: str, uri: str = "a") -> Snapshot:
    """A document at one version."""
    return Snapshot(uri, "python", 1, 1, lines, "\n", types.PositionEncodingKind.Utf16)


def test_a_line_counts_once_as_it_is_now_and_blank_ones_do_not():
    edits = RecentEdits()
    for now in ("t", "to", "total = 1"):
        edits.note(text("", now), 1, 1)
    edits.note(text("", "total = 1", ""), 1, 2)
    assert edits.far_from("b", 0) == ("total = 1",)


def test_the_newest_comes_first_and_what_is_near_the_cursor_is_left_out():
    edits = RecentEdits()
    edits.note(text(*"abc"), 0, 1)
    edits.note(text(*"xyz", uri="b"), 2, 1)
    assert edits.far_from("c", 0) == ("z", "a")
    assert edits.far_from("b", 9) == ("a",)
    assert edits.far_from("b", 99) == ("z", "a")


def test_a_large_paste_leaves_its_last_lines():
    edits = RecentEdits()
    edits.note(text(*(f"line {n}" for n in range(100))), 0, 100)
    assert edits.far_from("b", 0) == tuple(f"line {n}" for n in range(99, 87, -1))
