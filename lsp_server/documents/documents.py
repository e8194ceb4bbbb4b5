"""All open documents and notebook cells, or the reasons why some are not held."""

from collections.abc import Sequence
from itertools import count

from lsprotocol import types

from lsp_server.documents.document import ContentChanges, Document, Snapshot, WholeDocument
from lsp_server.documents.line_buffer import num_utf8_bytes
from lsp_server.reasons import Reason

MAX_DOCUMENT_BYTES = 4 * 2**20  # larger than code; more would block the event loop for over 50 ms


class Documents:
    """Documents by URI. Bad input from a client raises no error but returns a refusal."""

    def __init__(self) -> None:
        self._documents: dict[str, Document] = {}  # including refused ones
        self._notebooks: dict[str, list[str]] = {}  # the cells' URIs in order
        self._notebook_of: dict[str, str] = {}  # by the URI of a cell
        self._openings = count(1)

    def snapshot(self, uri: str) -> Snapshot | Reason:
        """Return the current document, or why there is none."""
        document = self._documents.get(uri)
        if document is None:
            return Reason.UNKNOWN_DOCUMENT
        return document.refusal or document.snapshot

    def snapshots(self) -> tuple[Snapshot, ...]:
        """Return all documents held, in the order in which they were first opened."""
        return tuple(one.snapshot for one in self._held)

    def open(self, item: types.TextDocumentItem) -> Reason | None:
        """Hold a document, in place of one already open."""
        reason = _reason_against(item.uri, item.text)
        self._documents[item.uri] = Document(item, next(self._openings), reason)
        return reason

    def change(self, uri: str, version: int, changes: ContentChanges) -> Reason | None:
        """Apply changes in order; to a refused document only from its whole text on."""
        document = self._documents.get(uri)
        if document is None:
            return Reason.UNKNOWN_DOCUMENT
        if document.refusal and not any(isinstance(change, WholeDocument) for change in changes):
            return document.refusal
        reasons = (_reason_against(uri, change.text) for change in changes)
        reason = next(filter(None, reasons), None)
        if reason is None:
            document.change(version, changes)
        if document.buffer.num_bytes > MAX_DOCUMENT_BYTES:
            reason = reason or Reason.TOO_LARGE
        if reason is not None:
            document.refuse(reason)
        return reason

    def close(self, uri: str) -> None:
        """Forget a document and its refusal."""
        self._documents.pop(uri, None)

    def lose_step(self, uri: str | None) -> None:
        """Refuse this document or notebook, or all if None, after a change of its text was lost."""
        lost = {uri, *self._notebooks.get(uri or "", ())}
        for document in self._held:
            if uri is None or document.snapshot.uri in lost:
                document.refuse(Reason.OUT_OF_STEP)

    def notebook_of(self, uri: str) -> str:
        """Return the URI of a cell's notebook; "" if the document is no cell."""
        return self._notebook_of.get(uri, "")

    def cells(self, notebook_uri: str) -> tuple[Snapshot, ...]:
        """Return the cells of a notebook in order, if their texts are held."""
        cells = map(self.snapshot, self._notebooks.get(notebook_uri, ()))
        return tuple(cell for cell in cells if isinstance(cell, Snapshot))

    def open_notebook(self, params: types.DidOpenNotebookDocumentParams) -> None:
        """Hold the cells of a notebook, each as a document."""
        notebook = params.notebook_document
        self._keep_cells(notebook.uri, [cell.document for cell in notebook.cells])
        for item in params.cell_text_documents:
            self.open(item)

    def change_notebook(self, params: types.DidChangeNotebookDocumentParams) -> None:
        """Apply a notebook's changes: first to the list of cells, then to their texts."""
        uri, change = params.notebook_document.uri, params.change.cells
        if change is None:
            return
        cells = list(self._notebooks.get(uri, ()))
        if (structure := change.structure) is not None:
            array = structure.array
            added = [cell.document for cell in array.cells or ()]
            cells[array.start : array.start + array.delete_count] = added
            for closed in structure.did_close or ():
                self.close(closed.uri)
            for opened in structure.did_open or ():
                self.open(opened)
        self._keep_cells(uri, cells)
        for content in change.text_content or ():
            self.change(content.document.uri, content.document.version, content.changes)

    def close_notebook(self, params: types.DidCloseNotebookDocumentParams) -> None:
        """Forget all cells of a notebook, even those that the client does not name."""
        uri, named = params.notebook_document.uri, params.cell_text_documents
        cells = self._notebooks.get(uri, ())
        self._keep_cells(uri, ())
        for each in (*(one.uri for one in named), *cells):
            self.close(each)

    @property
    def _held(self) -> list[Document]:
        return [one for one in self._documents.values() if one.refusal is None]

    def _keep_cells(self, uri: str, cells: Sequence[str]) -> None:
        self._notebooks[uri] = list(cells)
        if not cells:
            del self._notebooks[uri]
        self._notebook_of = {
            cell: notebook for notebook, kept in self._notebooks.items() for cell in kept
        }


def _reason_against(uri: str, text: str) -> Reason | None:
    if uri.encode("utf-8", "replace").decode() != uri:
        return Reason.BAD_ADDRESS
    # A text has no more code points than bytes, so the first test avoids copying a huge text.
    if len(text) > MAX_DOCUMENT_BYTES or num_utf8_bytes(text) > MAX_DOCUMENT_BYTES:
        return Reason.TOO_LARGE
    return Reason.BINARY if "\0" in text else None
