"""Which cells a notebook has, in which order."""

import random

from lsprotocol import types

from lsp_server.documents.notebooks import Notebooks

CODE, PROSE = types.NotebookCellKind.Code, types.NotebookCellKind.Markup


def cell(name, kind=CODE):
    return types.NotebookCell(kind, name)


def notebook(uri, *names):
    return types.NotebookDocument(uri, "jupyter", 1, [cell(name) for name in names])


def names(notebooks, uri="n"):
    return [one.document for one in notebooks.cells(uri)]


def test_a_cell_knows_its_notebook_until_it_goes():
    notebooks = Notebooks()
    notebooks.open(notebook("n", "a", "b"))
    notebooks.open(notebook("m", "c"))
    assert [notebooks.owner(name) for name in "abcd"] == ["n", "n", "m", ""]
    notebooks.splice("n", types.NotebookCellArrayChange(0, 1))
    assert [notebooks.owner(name) for name in "ab"] == ["", "n"]
    assert notebooks.close("n") == ("b",)
    assert [notebooks.owner(name) for name in "bc"] == ["", "m"]


def test_a_cell_becomes_prose():
    notebooks = Notebooks()
    notebooks.open(notebook("n", "a", "b"))
    notebooks.update("n", [cell("b", PROSE), cell("unknown", PROSE)])
    assert [one.kind for one in notebooks.cells("n")] == [CODE, PROSE]


def test_an_unknown_notebook_has_no_cells_and_closing_it_is_no_trouble():
    notebooks = Notebooks()
    notebooks.update("n", [cell("a")])
    assert (notebooks.cells("n"), notebooks.close("n")) == ((), ())


def test_any_run_of_splices_leaves_the_order_of_a_plain_list():
    rng, notebooks, plain = random.Random(3), Notebooks(), list("abc")  # noqa: S311 - a draw, no secret
    notebooks.open(notebook("n", *plain))
    for number in range(200):
        start = rng.randint(0, len(plain))
        count = rng.randint(0, min(2, len(plain) - start))
        added = [f"{number}-{one}" for one in range(rng.randint(0, 2))]
        plain[start : start + count] = added
        change = types.NotebookCellArrayChange(start, count, [cell(name) for name in added])
        notebooks.splice("n", change)
        assert names(notebooks) == plain
        assert all(notebooks.owner(name) == "n" for name in plain)
