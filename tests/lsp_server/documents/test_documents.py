"""Every text that the editor has open, or why we do not hold it."""

import random

import pytest
from lsprotocol import types

from lsp_server.documents.documents import MAX_DOCUMENT_BYTES, Documents
from lsp_server.reasons import Reason

URI = "file:///a.py"
TOO_MUCH = "é" * (MAX_DOCUMENT_BYTES // 2 + 1)


def item(text, version=1, uri=URI):
    return types.TextDocumentItem(uri, "python", version, text)


def whole(text):
    return types.TextDocumentContentChangeWholeDocument(text)


def part(start, end, text):
    """A change within line 0."""
    where = types.Range(types.Position(0, start), types.Position(0, end))
    return types.TextDocumentContentChangePartial(where, text)


def holding(text, version=1):
    documents = Documents()
    assert documents.open(item(text, version)) is None
    return documents


@pytest.mark.parametrize("uri", ["file:///a\ud83d.py", "untitled:\ude00"])
def test_an_address_that_no_message_can_carry_is_refused_and_no_other(uri):
    """It silenced all documents."""
    documents = holding("a")
    assert documents.open(item("b", uri=uri)) is Reason.BAD_ADDRESS
    assert [one.uri for one in documents.snapshots()] == [URI]


def test_an_unknown_document_is_a_refusal_not_a_failure():
    documents = Documents()
    unknown = Reason.UNKNOWN_DOCUMENT
    assert documents.snapshot(URI) is unknown
    assert documents.change(URI, 2, [whole("x")]) is unknown
    documents.close(URI)
    assert "not opened" in unknown.sentence


@pytest.mark.parametrize(
    ("text", "reason"),
    [(TOO_MUCH, Reason.TOO_LARGE), ("\x7fELF\0", Reason.BINARY), ("a\0", Reason.BINARY)],
)
def test_what_is_no_source_text_is_refused_and_not_kept(text, reason):
    documents = Documents()
    assert documents.open(item(text)) is documents.snapshot(URI) is reason
    assert documents.snapshots() == ()


@pytest.mark.parametrize(
    ("text", "change", "reason"),
    [
        ("a", TOO_MUCH, Reason.TOO_LARGE),
        ("a", "\0", Reason.BINARY),
        ("x" * (MAX_DOCUMENT_BYTES - 1), "x", None),
        ("x" * MAX_DOCUMENT_BYTES, "x", Reason.TOO_LARGE),
    ],
)
def test_a_change_can_make_a_document_one_that_is_refused(text, change, reason):
    documents = holding(text)
    assert documents.change(URI, 2, [part(0, 0, change)]) is reason
    assert (documents.snapshots() == ()) is (reason is not None)


def test_changes_to_a_refused_document_are_left_out_until_one_brings_the_whole_text():
    documents = Documents()
    documents.open(item("\0"))
    assert documents.change(URI, 2, [part(0, 1, "")]) is Reason.BINARY
    assert documents.change(URI, 3, [part(0, 1, ""), whole("ab"), part(2, 2, "c")]) is None
    assert documents.snapshot(URI).lines == ("abc",)
    assert (documents.snapshot(URI).version, documents.snapshot(URI).language_id) == (3, "python")


@pytest.mark.parametrize("versions", [(1, 1, 1), (0, 0, 0), (3, 2, 1), (7, 7, 8), (2, 3, 4)])
def test_changes_count_in_the_order_of_their_arrival_whatever_their_versions(versions):
    documents = holding("", version=1)
    seen = [documents.snapshot(URI)]
    for number, version in enumerate(versions):
        assert documents.change(URI, version, [part(number, number, "abc"[number])]) is None
        seen.append(documents.snapshot(URI))
    assert [one.lines[0] for one in seen] == ["", "a", "ab", "abc"]
    assert len({one.version for one in seen}) == 4


def test_a_second_open_counts_and_a_second_close_is_no_trouble():
    documents = holding("", version=4)
    first = documents.snapshot(URI)
    assert first.lines == ("",)
    documents.open(item("b", version=4))
    documents.change(URI, 9, [part(1, 1, "c")])
    now = documents.snapshot(URI)
    assert (now.lines, now.version, now.opening > first.opening) == (("bc",), 9, True)
    documents.close(URI)
    documents.close(URI)
    assert (documents.snapshot(URI), documents.snapshots()) == (Reason.UNKNOWN_DOCUMENT, ())
    assert documents.change(URI, 5, [part(0, 0, "x")]) is Reason.UNKNOWN_DOCUMENT
    documents.open(item("d", version=1))
    assert documents.snapshot(URI).lines == ("d",)


def test_a_lost_change_puts_the_document_out_of_step_and_no_other():
    documents = holding("a")
    documents.open(item("b", uri="file:///b.py"))
    documents.lose_step(URI)
    documents.lose_step("file:///unknown.py")
    documents.lose_step("")
    assert documents.snapshot(URI) is Reason.OUT_OF_STEP
    assert [one.uri for one in documents.snapshots()] == ["file:///b.py"]
    documents.lose_step(None)  # it may have been of any
    assert documents.snapshots() == ()


NOTEBOOK = "file:///n.ipynb"


def cell(name):
    return types.NotebookCell(types.NotebookCellKind.Code, f"{NOTEBOOK}#{name}")


def cell_text(name, text):
    return item(text, uri=f"{NOTEBOOK}#{name}")


def notebook_of(**texts):
    documents = Documents()
    notebook = types.NotebookDocument(NOTEBOOK, "jupyter", 1, [cell(name) for name in texts])
    opened = [cell_text(name, text) for name, text in texts.items()]
    documents.open_notebook(types.DidOpenNotebookDocumentParams(notebook, opened))
    return documents


def change(documents, **cells):
    documents.change_notebook(
        types.DidChangeNotebookDocumentParams(
            types.VersionedNotebookDocumentIdentifier(2, NOTEBOOK),
            types.NotebookDocumentChangeEvent(cells=types.NotebookDocumentCellChanges(**cells)),
        )
    )


def structure(start, delete_count, *names, opened=(), closed=()):
    return types.NotebookDocumentCellChangeStructure(
        types.NotebookCellArrayChange(start, delete_count, [cell(name) for name in names]),
        did_open=opened,
        did_close=[types.TextDocumentIdentifier(f"{NOTEBOOK}#{name}") for name in closed],
    )


def cells_of(documents):
    """Name and text of each cell, in their order."""
    return {one.uri.partition("#")[2]: one.lines[0] for one in documents.cells(NOTEBOOK)}


def test_cells_move_and_are_added_and_changed_at_once():
    documents = notebook_of(a="1", b="2")
    assert list(cells_of(documents).items()) == [("a", "1"), ("b", "2")]
    identifier = types.VersionedTextDocumentIdentifier(2, f"{NOTEBOOK}#c")
    content = types.NotebookDocumentCellContentChanges(identifier, [part(0, 0, "3")])
    moved = structure(0, 2, "b", "c", "a", opened=[cell_text("c", "")])
    change(documents, structure=moved, text_content=[content])
    assert list(cells_of(documents).items()) == [("b", "2"), ("c", "3"), ("a", "1")]


def test_a_closed_notebook_takes_all_its_cells_along():
    documents = notebook_of(a="1", b="2")
    named = [types.TextDocumentIdentifier(f"{NOTEBOOK}#a")]
    identifier = types.NotebookDocumentIdentifier(NOTEBOOK)
    documents.close_notebook(types.DidCloseNotebookDocumentParams(identifier, named))
    assert (documents.snapshots(), documents.cells(NOTEBOOK)) == ((), ())
    assert documents.notebook_of(f"{NOTEBOOK}#b") == ""


def test_a_lost_change_of_a_notebook_puts_all_its_cells_out_of_step():
    documents = notebook_of(a="1", b="2")
    documents.lose_step(NOTEBOOK)
    reasons = [documents.snapshot(f"{NOTEBOOK}#{name}") for name in "ab"]
    assert reasons == [Reason.OUT_OF_STEP, Reason.OUT_OF_STEP]
    assert documents.cells(NOTEBOOK) == ()


def test_unknown_notebooks_and_changes_without_cells_are_no_trouble():
    documents = Documents()
    change(documents, structure=structure(3, 2, "a"))
    documents.change_notebook(
        types.DidChangeNotebookDocumentParams(
            types.VersionedNotebookDocumentIdentifier(2, "file:///other.ipynb"),
            types.NotebookDocumentChangeEvent(),
        )
    )
    assert documents.snapshots() == ()


def test_a_cell_knows_its_notebook_until_it_goes():
    documents = notebook_of(a="1", b="2")
    change(documents, structure=structure(0, 1, closed="a"))
    assert documents.snapshot(f"{NOTEBOOK}#a") is Reason.UNKNOWN_DOCUMENT
    assert [documents.notebook_of(f"{NOTEBOOK}#{name}") for name in "ab"] == ["", NOTEBOOK]


def test_any_run_of_splices_leaves_the_order_of_a_plain_list():
    rng, documents, plain = random.Random(3), notebook_of(a="a", b="b", c="c"), list("abc")  # noqa: S311 - a draw, no secret
    for number in range(200):
        start = rng.randint(0, len(plain))
        count = rng.randint(0, min(2, len(plain) - start))
        added = [f"{number}-{one}" for one in range(rng.randint(0, 2))]
        plain[start : start + count] = added
        opened = [cell_text(name, name) for name in added]
        change(documents, structure=structure(start, count, *added, opened=opened))
        assert list(cells_of(documents)) == plain
        assert all(documents.notebook_of(f"{NOTEBOOK}#{name}") == NOTEBOOK for name in plain)
