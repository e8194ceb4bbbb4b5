"""Which cells a notebook has, and in which order. Their texts are documents like any other."""

from collections.abc import Iterable

from lsprotocol import types


class Notebooks:
    """The cells of all open notebooks, by the URIs that the editor gives to both."""

    def __init__(self) -> None:
        self._cells: dict[str, list[types.NotebookCell]] = {}
        self._owners: dict[str, str] = {}  # the notebook of each cell

    def open(self, notebook: types.NotebookDocument) -> None:
        """Know a notebook from now on."""
        self._cells[notebook.uri] = list(notebook.cells)
        self._own()

    def splice(self, uri: str, change: types.NotebookCellArrayChange) -> None:
        """Cells were added, removed or moved."""
        cells = self._cells.setdefault(uri, [])
        cells[change.start : change.start + change.delete_count] = change.cells or ()
        self._own()

    def update(self, uri: str, changed: Iterable[types.NotebookCell]) -> None:
        """What cells are, code or prose, has changed."""
        news = {cell.document: cell for cell in changed}
        cells = self._cells.get(uri, [])
        cells[:] = [news.get(cell.document, cell) for cell in cells]

    def close(self, uri: str) -> tuple[str, ...]:
        """Forget a notebook; the URIs of its cells."""
        cells = self._cells.pop(uri, ())
        self._own()
        return tuple(cell.document for cell in cells)

    def owner(self, cell_uri: str) -> str:
        """The notebook of a cell; "" of a document that is none."""
        return self._owners.get(cell_uri, "")

    def cells(self, uri: str) -> tuple[types.NotebookCell, ...]:
        """The cells of a notebook in their order."""
        return tuple(self._cells.get(uri, ()))

    def _own(self) -> None:
        self._owners = {cell.document: uri for uri, cells in self._cells.items() for cell in cells}
