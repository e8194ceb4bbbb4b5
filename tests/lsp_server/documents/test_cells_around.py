"""What a prompt shows of the other cells of a notebook."""

import pytest
from lsprotocol import types

from engine.host.protocol import Cell
from lsp_server.documents.cells_around import ALONE, cells_around
from lsp_server.documents.documents import Documents

NOTEBOOK = "file:///shop/n.ipynb"
CODE = types.NotebookCellKind.Code


def notebook(*cells):
    """Documents with a notebook of cells: their languages and texts."""
    documents = Documents()
    texts = [
        types.TextDocumentItem(f"{NOTEBOOK}#{number}", language, 1, text)
        for number, (language, text) in enumerate(cells)
    ]
    listed = [types.NotebookCell(CODE, text.uri) for text in texts]
    held = types.NotebookDocument(NOTEBOOK, "jupyter", 1, listed)
    documents.open_notebook(types.DidOpenNotebookDocumentParams(held, texts))
    return documents


def python(text):
    return "python", text


def prose(text):
    return "markdown", text


def around(documents, number):
    return cells_around(documents, documents.snapshot(f"{NOTEBOOK}#{number}"))


def shown(documents, number):
    """Numbers and signs of the cells above and below."""
    found = around(documents, number)
    return [[(one.uri[-1], one.sign) for one in side] for side in (found.above, found.below)]


def test_cells_stand_above_and_below_in_their_order():
    documents = notebook(*(python(text) for text in "abcd"))
    assert shown(documents, 2) == [[("0", ""), ("1", "")], [("3", "")]]


def test_short_prose_is_a_comment_of_the_cells_language():
    for language, sign in (("python", "#"), ("r", "#"), ("sql", "--"), ("rust", "//")):
        documents = notebook(prose("# Sales"), (language, "x"))
        assert shown(documents, 1) == [[("0", sign)], []]


def test_how_a_magics_language_writes_comments_is_not_known():
    assert shown(notebook(prose("# Sales"), python("%%perl\nx")), 1) == [[], []]


@pytest.mark.parametrize("text", ["line\n" * 13, "a word " * 100, "", " \n\t"])
def test_long_prose_and_blank_cells_are_left_out(text):
    assert shown(notebook(prose(text), python("x")), 1) == [[], []]
    assert shown(notebook(python("\n "), python("x")), 1) == [[], []]


def test_code_is_never_too_long():
    assert shown(notebook(python("x = 1\n" * 5000), python("x")), 1) == [[("0", "")], []]


def test_cells_of_another_language_are_left_out():
    documents = notebook(("r", "x <- 1"), python("y"), ("raw", "text"))
    assert around(documents, 1) == ALONE


def test_a_magic_makes_a_cell_one_of_another_language():
    documents = notebook(
        python("%%bash\nls"),
        python("%%time\nrun()"),
        python("%matplotlib inline"),
        python("x"),
        python("%%bash\npwd"),
    )
    assert shown(documents, 3) == [[("1", ""), ("2", "")], []]
    assert shown(documents, 4) == [[("0", "")], []]


def test_prose_stands_among_prose():
    documents = notebook(prose("one"), python("x"), prose("two"))
    assert shown(documents, 2) == [[("0", "")], []]


def test_a_document_that_is_no_cell_has_none_around():
    documents = notebook(python("x"))
    documents.open(types.TextDocumentItem("file:///a.py", "python", 1, "a"))
    assert cells_around(documents, documents.snapshot("file:///a.py")) is ALONE


def test_an_edit_of_a_cell_around_makes_it_another_place_and_one_elsewhere_does_not():
    documents = notebook(python("a"), python("b"), ("r", "c"))
    first = around(documents, 1)
    whole = types.TextDocumentContentChangeWholeDocument("new")
    documents.change(f"{NOTEBOOK}#2", 2, [whole])
    assert around(documents, 1) == first
    documents.change(f"{NOTEBOOK}#0", 2, [whole])
    assert around(documents, 1) != first
    assert around(documents, 1).above == first.above == (Cell(f"{NOTEBOOK}#0"),)


def test_of_a_huge_notebook_the_nearest_cells_are_shown(monkeypatch):
    documents = notebook(*(python(text) for text in "abcdefghi"))
    monkeypatch.setattr("lsp_server.documents.cells_around.MAX_CELLS", 2)
    assert shown(documents, 4) == [[("2", ""), ("3", "")], [("5", ""), ("6", "")]]
    monkeypatch.setattr("lsp_server.documents.cells_around.MAX_CELL_CHARS", 7)
    assert shown(documents, 4) == [[("3", "")], [("5", "")]]


def test_a_cell_that_a_client_names_twice_is_shown_once():
    documents = notebook(python("a"), python("b"))
    cells = [types.NotebookCell(CODE, f"{NOTEBOOK}#{number}") for number in (0, 0, 1, 0)]
    held = types.NotebookDocument(NOTEBOOK, "jupyter", 1, cells)
    documents.open_notebook(types.DidOpenNotebookDocumentParams(held, []))
    assert shown(documents, 1) == [[("0", "")], []]
