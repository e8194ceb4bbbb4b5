"""All open documents, notebook cells too, or the reason why one is not held."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import count
from typing import NamedTuple

from lsprotocol import types

from lsp_server.documents.document import ContentChanges, Document, Snapshot, Splices
from lsp_server.documents.line_buffer import num_utf8_bytes
from lsp_server.reasons import Reason

MAX_DOCUMENT_BYTES = 4 * 2**20  # more keep the event loop for over 50 ms, and no code has them


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


@dataclass(frozen=True, slots=True)
class DocumentRefused:
    """Why there is no text for this URI, or why a change to it was rejected."""

    uri: str
    reason: Reason
    language_id: str = ""


class HeldCell(NamedTuple):
    """A cell of a notebook, as it is now."""

    snapshot: Snapshot
    is_prose: bool


class Documents:
    """Documents by URI. Nothing here raises because of what a client sends: it returns a refusal."""

    def __init__(self) -> None:
        # Negotiated when a client initializes, before it opens anything.
        self.encoding = types.PositionEncodingKind.Utf16
        self._held: dict[str, Document | DocumentRefused] = {}
        self._notebooks = Notebooks()
        self._openings = count(1)

    def snapshot(self, uri: str) -> Snapshot | DocumentRefused:
        """The document as it is now, or why there is none."""
        held = self._held.get(uri) or DocumentRefused(uri, Reason.UNKNOWN_DOCUMENT)
        return held.snapshot() if isinstance(held, Document) else held

    def splices_since(self, uri: str, version: int, until: int | None = None) -> Splices | None:
        """What turns the lines of `version` into those of `until`, or the present ones.

        None if it is not known. Both must be of the present opening, as `Snapshot.opening` tells.
        """
        held = self._held.get(uri)
        return held.splices_since(version, until) if isinstance(held, Document) else None

    def uris(self) -> tuple[str, ...]:
        """The documents whose text is held, in the order in which they were first opened."""
        return tuple(uri for uri, held in self._held.items() if isinstance(held, Document))

    def snapshots(self) -> tuple[Snapshot, ...]:
        """All that are held, as they are now."""
        held = (one for one in self._held.values() if isinstance(one, Document))
        return tuple(one.snapshot() for one in held)

    def open(self, item: types.TextDocumentItem) -> DocumentRefused | None:
        """Hold a document from now on; one that is open already is replaced."""
        reason = _reason_against(item.text)
        if item.uri.encode("utf-8", "replace").decode() != item.uri:
            reason = Reason.BAD_ADDRESS
        if reason is not None:
            return self._refuse(item.uri, reason, item.language_id)
        self._held[item.uri] = Document(item, next(self._openings), self.encoding)
        return None

    def change(self, uri: str, version: int, changes: ContentChanges) -> DocumentRefused | None:
        """Apply changes in their order."""
        held = self._held.get(uri)
        if held is None:
            return DocumentRefused(uri, Reason.UNKNOWN_DOCUMENT)
        if isinstance(held, DocumentRefused):
            return self._restart(held, version, changes)
        return self._apply(held, version, changes)

    def close(self, uri: str) -> None:
        """Forget a document, and why it was refused."""
        self._held.pop(uri, None)

    def lose_step(self, uri: str | None) -> None:
        """A change to this document or notebook is lost, so its text differs from the editor's.

        None: it may have been any of them.
        """
        cells = () if uri is None else self._notebooks.cells(uri)
        lost = self.uris() if uri is None else (uri, *(cell.document for cell in cells))
        for each in lost:
            held = self._held.get(each)
            if isinstance(held, Document):
                self._refuse(each, Reason.OUT_OF_STEP, held.language_id)

    def notebook_of(self, uri: str) -> str:
        """The URI of the notebook that a document is a cell of; "" if it is none."""
        return self._notebooks.owner(uri)

    def cells(self, notebook_uri: str) -> tuple[HeldCell, ...]:
        """The cells of a notebook in their order, as far as their texts are held."""
        return tuple(
            HeldCell(snapshot, cell.kind is types.NotebookCellKind.Markup)
            for cell in self._notebooks.cells(notebook_uri)
            if isinstance(snapshot := self.snapshot(cell.document), Snapshot)
        )

    def open_notebook(self, params: types.DidOpenNotebookDocumentParams) -> None:
        """Hold the cells of a notebook, each as a document."""
        self._notebooks.open(params.notebook_document)
        for item in params.cell_text_documents:
            self.open(item)

    def change_notebook(self, params: types.DidChangeNotebookDocumentParams) -> None:
        """Follow a notebook: cells added, removed and moved first, then texts changed."""
        uri, cells = params.notebook_document.uri, params.change.cells
        if cells is None:
            return
        if (structure := cells.structure) is not None:
            self._notebooks.splice(uri, structure.array)
            for closed in structure.did_close or ():
                self.close(closed.uri)
            for opened in structure.did_open or ():
                self.open(opened)
        self._notebooks.update(uri, cells.data or ())
        for content in cells.text_content or ():
            self.change(content.document.uri, content.document.version, content.changes)

    def close_notebook(self, params: types.DidCloseNotebookDocumentParams) -> None:
        """Forget a notebook's cells, those that the client does not name too."""
        named = [cell.uri for cell in params.cell_text_documents]
        for uri in (*named, *self._notebooks.close(params.notebook_document.uri)):
            self.close(uri)

    def _apply(
        self, document: Document, version: int, changes: ContentChanges
    ) -> DocumentRefused | None:
        reason = next(filter(None, (_reason_against(change.text) for change in changes)), None)
        if reason is None:
            try:
                document.change(version, changes)
            except ValueError:
                reason = Reason.OUT_OF_STEP
        if document.num_bytes > MAX_DOCUMENT_BYTES:
            reason = reason or Reason.TOO_LARGE
        return self._refuse(document.uri, reason, document.language_id) if reason else None

    def _restart(
        self, refused: DocumentRefused, version: int, changes: ContentChanges
    ) -> DocumentRefused | None:
        """Hold a refused document again if a change brings its whole text."""
        whole = types.TextDocumentContentChangeWholeDocument
        starts = [n for n, change in enumerate(changes) if isinstance(change, whole)]
        if not starts:
            return refused
        text, later = changes[starts[-1]].text, changes[starts[-1] + 1 :]
        item = types.TextDocumentItem(refused.uri, refused.language_id, version - 1, text)
        self.open(item)
        held = self._held[refused.uri]
        return self._apply(held, version, later) if isinstance(held, Document) else held

    def _refuse(self, uri: str, reason: Reason, language_id: str) -> DocumentRefused:
        self._held[uri] = refused = DocumentRefused(uri, reason, language_id)
        return refused


def _reason_against(text: str) -> Reason | None:
    # Code points are at most bytes, so the first test spares the second its copy of a huge text.
    if len(text) > MAX_DOCUMENT_BYTES or num_utf8_bytes(text) > MAX_DOCUMENT_BYTES:
        return Reason.TOO_LARGE
    return Reason.BINARY if "\0" in text else None
