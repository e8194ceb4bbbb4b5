"""Where cursors stand in documents that change."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lsprotocol import types

from engine.host.protocol import LineSplice, Position
from lsp_server.documents.document import Snapshot
from lsp_server.documents.documents import Documents
from lsp_server.prompt.place import Place
from lsp_server.prompt.places import Places

URI = "file:///a.py"
PIECES = st.sampled_from(['"', "'", "#", "\n", "def f():", "(", ")", "x = 1", "é", '"""', " "])


class Opened:
    """A document that a test edits, and its places."""

    def __init__(self, text: str = "", language: str = "python") -> None:
        self.documents = Documents()
        self.documents.encoding = types.PositionEncodingKind.Utf32
        self.asked: list[tuple[int, tuple[LineSplice, ...] | None]] = []
        self.places = Places(self._splices_since)
        self.version = 0
        self.open(text, language)

    def open(self, text: str, language: str = "python") -> None:
        self.version = 1
        self.documents.open(types.TextDocumentItem(URI, language, 1, text))

    def change(self, text: str, start: tuple[int, int], end: tuple[int, int] | None = None) -> None:
        self.version += 1
        where = types.Range(types.Position(*start), types.Position(*(end or start)))
        change = types.TextDocumentContentChangePartial(where, text)
        assert self.documents.change(URI, self.version, [change]) is None

    @property
    def snapshot(self) -> Snapshot:
        snapshot = self.documents.snapshot(URI)
        assert isinstance(snapshot, Snapshot)
        return snapshot

    def at(self, line: int, character: int) -> Place:
        return self.places.place(self.snapshot, Position(line, character))

    def _splices_since(self, uri, version):
        splices = self.documents.splices_since(uri, version)
        self.asked.append((version, splices))
        return splices


def test_a_place_is_judged_and_follows_the_edits():
    opened = Opened("def f():\n    x = 1\n")
    assert opened.at(1, 9) is Place.CODE
    opened.change("# ", (1, 4))
    assert opened.at(1, 11) is Place.COMMENT
    opened.change("", (1, 4), (1, 6))
    assert opened.at(1, 9) is Place.CODE
    assert [version for version, _ in opened.asked] == [1, 2]


def test_an_edit_that_nobody_asked_after_is_not_lost():
    opened = Opened("x = 1\n")
    opened.at(0, 0)
    opened.change('"""\n', (0, 0))
    opened.change("more\n", (1, 0))
    opened.change('"""\n', (2, 0))
    assert opened.at(1, 2) is Place.STRING
    ((_, splices),) = opened.asked
    assert splices is not None
    assert len(splices) == 3


def test_a_document_that_was_opened_anew_is_read_anew():
    opened = Opened("x = 1\n")
    assert opened.at(0, 5) is Place.CODE
    opened.documents.close(URI)
    opened.open("// a comment\n", "javascript")
    assert opened.at(0, 12) is Place.COMMENT
    assert opened.asked == []


def test_a_way_that_is_forgotten_leads_to_a_new_tree():
    opened = Opened("x = 1\n")
    opened.at(0, 0)
    opened.change("y" * 2_000_000 + "\n", (0, 0))  # more than the log of splices keeps
    opened.change("# ", (1, 0))
    assert opened.at(1, 4) is Place.COMMENT
    assert opened.asked == [(1, None)]


def test_who_asks_for_a_place_that_is_not_there_spoils_no_tree():
    opened = Opened("x = 1\n# y\n")
    opened.at(0, 0)
    opened.change("z\n", (0, 0))
    with pytest.raises(IndexError):
        opened.at(99, 0)
    opened.change("z\n", (0, 0))
    assert opened.at(3, 3) is Place.COMMENT
    assert opened.at(2, 5) is Place.CODE


def test_what_is_forgotten_needs_no_splices_and_nothing_waits_for_it():
    opened = Opened("x = 1\n")
    opened.at(0, 0)
    opened.places.forget(URI)
    opened.places.forget(URI)
    opened.places.catch_up(URI)
    assert opened.at(0, 5) is Place.CODE
    assert opened.asked == []


def test_a_language_without_a_grammar_is_judged_by_its_text():
    opened = Opened("-- a comment\nx = 1\n", "lua")
    assert opened.at(0, 12) is Place.COMMENT
    opened.change("-- ", (1, 0))
    assert opened.at(1, 8) is Place.COMMENT


@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30), PIECES, st.booleans()), max_size=12)
)
def test_a_followed_tree_says_what_a_new_one_says(edits):
    """After each edit, or a few, the place is that of the same text opened afresh."""
    opened = Opened('def f():\n    """Says."""\n    return (1)\n')
    for any_row, any_column, text, is_asked in edits:
        lines = opened.snapshot.lines
        row = min(any_row, len(lines) - 1)
        column = min(any_column, len(lines[row]))
        opened.change(text, (row, column), (row, min(column + 1, len(lines[row]))))
        if is_asked:
            opened.places.catch_up(URI)
            fresh = Opened("\n".join(opened.snapshot.lines))
            assert opened.at(row, column) is fresh.at(row, column)
